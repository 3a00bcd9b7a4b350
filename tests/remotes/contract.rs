//! The contract of every storage.

use std::sync::Mutex;

use stvc::storages::{Error, LONGEST_OBJECT, Storage};

/// A path with characters of several scripts, and characters that URLs escape.
pub const PATH: &str = "聊天 记录/🌊 & 100%25/Ünï";

/// How to create the objects of a long list.
pub enum Many<'s> {
    Write,
    /// Creates 1,000 objects `many/0000` to `many/0999` of 4 bytes.
    Seed(&'s dyn Fn()),
}

pub fn assert_contract(storage: &dyn Storage, many: Many) {
    objects_are_written_listed_read_and_deleted(storage);
    large_and_empty_objects_are_kept(storage);
    invalid_names_are_refused(storage);
    threads_use_one_storage(storage);
    long_list_is_complete(storage, many);
}

#[track_caller]
pub fn names(storage: &dyn Storage, prefix: &str) -> Vec<(String, u64)> {
    let listed = storage.list(prefix).unwrap();
    listed.into_iter().map(|listed| (listed.name, listed.bytes)).collect()
}

fn objects_are_written_listed_read_and_deleted(storage: &dyn Storage) {
    assert_eq!(names(storage, ""), []);
    assert_eq!(names(storage, "devices/none/"), []);
    let missing = storage.read("packs/none", 100).unwrap_err();
    assert!(missing.is_not_found(), "{missing:?}");
    storage.delete("packs/none").unwrap();
    storage.delete("none").unwrap();

    let all = [
        ("devices/a-1/1", "one"),
        ("devices/a-1/2", "second"),
        ("devices/b_2/1", "x"),
        ("packs/0f.pack", "\0\r\n\u{feff}"),
        ("stvc-remote", "format 1"),
    ];
    for (name, text) in all {
        storage.write(name, text.as_bytes()).unwrap();
    }
    let expected: Vec<_> = all.map(|(name, text)| (name.to_owned(), text.len() as u64)).into();
    assert_eq!(names(storage, ""), expected);
    assert_eq!(names(storage, "devices/"), expected[..3]);
    assert_eq!(names(storage, "devices/a-1/"), expected[..2]);
    assert_eq!(names(storage, "packs/"), expected[3..4]);
    for (name, text) in all {
        assert_eq!(storage.read(name, 100).unwrap(), text.as_bytes(), "{name}");
        assert_eq!(storage.read(name, text.len() as u64).unwrap(), text.as_bytes(), "{name}");
    }
    let long = storage.read("devices/a-1/2", 5).unwrap_err();
    assert!(matches!(long, Error::TooLarge { limit: 5, .. }), "{long:?}");

    // Writing equal bytes again is allowed.
    storage.write("devices/a-1/2", b"second").unwrap();
    assert_eq!(names(storage, ""), expected);
    assert_eq!(storage.read("devices/a-1/2", 100).unwrap(), b"second");

    storage.delete("devices/a-1/1").unwrap();
    storage.delete("devices/a-1/1").unwrap();
    assert_eq!(names(storage, "devices/"), expected[1..3]);
    assert!(storage.read("devices/a-1/1", 100).unwrap_err().is_not_found());
    for (name, _) in all {
        storage.delete(name).unwrap();
    }
    assert_eq!(names(storage, ""), []);
}

fn large_and_empty_objects_are_kept(storage: &dyn Storage) {
    storage.write("packs/empty", b"").unwrap();
    assert_eq!(storage.read("packs/empty", 0).unwrap(), b"");
    let mut state = 7_u32;
    let random = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let large: Vec<_> = (0..LONGEST_OBJECT).map(random).collect();
    storage.write("packs/large", &large).unwrap();
    assert!(storage.read("packs/large", LONGEST_OBJECT).unwrap() == large);
    let long = storage.read("packs/large", LONGEST_OBJECT - 1).unwrap_err();
    assert!(matches!(long, Error::TooLarge { .. }), "{long:?}");
    let expected = [("packs/empty".to_owned(), 0), ("packs/large".to_owned(), LONGEST_OBJECT)];
    assert_eq!(names(storage, "packs/"), expected);
    let longer = [large, vec![0]].concat();
    let long = storage.write("packs/longer", &longer).unwrap_err();
    assert!(matches!(long, Error::TooLarge { .. }), "{long:?}");
    storage.delete("packs/empty").unwrap();
    storage.delete("packs/large").unwrap();
}

fn invalid_names_are_refused(storage: &dyn Storage) {
    for name in ["", "/a", "a/", "../a", "a/../b", "-/../a", ".a", "a b", "雨", "a\nb", "C:\\a"] {
        let refused = |error: Error| assert!(matches!(error, Error::Name { .. }), "{error:?}");
        refused(storage.read(name, 9).unwrap_err());
        refused(storage.write(name, b"").unwrap_err());
        refused(storage.delete(name).unwrap_err());
    }
    for prefix in ["a", "/", "../", "a/../"] {
        assert!(matches!(storage.list(prefix).unwrap_err(), Error::Name { .. }), "{prefix}");
    }
    // Names that look like options.
    storage.write("-v/--help", b"a").unwrap();
    assert_eq!(storage.read("-v/--help", 9).unwrap(), b"a");
    assert_eq!(names(storage, "-v/"), [("-v/--help".to_owned(), 1)]);
    storage.delete("-v/--help").unwrap();
}

fn threads_use_one_storage(storage: &dyn Storage) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for n in 0..3 {
                    let name = format!("devices/{thread}/{n}");
                    storage.write(&name, name.as_bytes()).unwrap();
                    assert_eq!(storage.read(&name, 100).unwrap(), name.as_bytes());
                }
            });
        }
    });
    let listed = storage.list("devices/").unwrap();
    assert_eq!(listed.len(), 12);
    for listed in listed {
        storage.delete(&listed.name).unwrap();
    }
}

fn long_list_is_complete(storage: &dyn Storage, many: Many) {
    let next = Mutex::new(0..1000);
    match many {
        Many::Write => std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let n = next.lock().unwrap().next();
                        let Some(n) = n else { break };
                        storage
                            .write(&format!("many/{n:04}"), format!("{n:04}").as_bytes())
                            .unwrap();
                    }
                });
            }
        }),
        Many::Seed(seed) => seed(),
    }
    let expected: Vec<_> = (0..1000).map(|n| (format!("many/{n:04}"), 4)).collect();
    assert_eq!(names(storage, "many/"), expected);
    assert_eq!(names(storage, "").len(), 1000);
    assert_eq!(storage.read("many/0777", 4).unwrap(), b"0777");
}
