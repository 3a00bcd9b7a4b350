//! Finds problems in git's configuration file of the repository.

use super::Store;
use crate::regular;

impl Store {
    pub fn config_problem(&self) -> Option<String> {
        let path = self.git_dir.join("config");
        let text = match regular::read(&path) {
            Ok(text) => text,
            Err(error) => return Some(error.to_string()),
        };
        let config = match gix::config::File::try_from(String::from_utf8_lossy(&text).as_ref()) {
            Ok(config) => config,
            Err(error) => return Some(error.to_string().replace('\n', " ")),
        };
        let version =
            config.string("core.repositoryformatversion").map(|version| version.to_string());
        let is_inner = self.git_dir.file_name().is_some_and(|name| name == ".git");
        if !matches!(version.as_deref(), Some("0" | "1")) {
            return Some("core.repositoryformatversion is neither 0 nor 1".into());
        }
        // A clone with a work tree has its repository in `.git`, which is not bare.
        match config.boolean("core.bare") {
            Ok(None) => return Some("core.bare is missing".into()),
            Err(_) => return Some("core.bare is neither true nor false".into()),
            Ok(Some(false)) if !is_inner => return Some("core.bare is not true".into()),
            Ok(Some(_)) => {}
        }
        let optional = [
            "core.filemode",
            "core.logallrefupdates",
            "core.ignorecase",
            "core.precomposeunicode",
            "core.symlinks",
        ];
        let bad = optional.iter().find(|key| config.boolean(**key).is_err());
        bad.map(|key| format!("{key} is neither true nor false"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn non_bare_store_is_valid_only_as_a_dot_git_folder() {
        let folder = tempfile::tempdir().unwrap();
        for (name, is_valid) in [(".git", true), ("store", false)] {
            let store = Store::create(&folder.path().join(name)).unwrap();
            assert_eq!(store.config_problem(), None);
            let path = store.git_dir.join("config");
            let config = fs::read_to_string(&path).unwrap();
            assert!(config.contains("bare = true"), "{config}");
            fs::write(&path, config.replace("bare = true", "bare = false")).unwrap();
            assert_eq!(store.config_problem().is_none(), is_valid, "{name}");
        }
    }
}
