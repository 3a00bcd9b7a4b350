//! Declares the keys of the configuration: each key with its type, default and description.

use std::time::Duration;

/// A key of the configuration.
pub struct Key {
    /// The key with the name of its table, such as `retention.keep-last`.
    pub name: String,
    /// Description for `stvc config`.
    pub about: &'static str,
    pub(crate) is_plain: bool,
}

impl Key {
    pub(crate) fn in_table(self, table: &str) -> Self {
        Self { name: format!("{table}.{}", self.name), ..self }
    }
}

pub(crate) trait Setting {
    const IS_PLAIN: bool = false;
}

impl Setting for bool {
    const IS_PLAIN: bool = true;
}

impl Setting for u64 {
    const IS_PLAIN: bool = true;
}

impl Setting for String {}

impl Setting for Duration {}

impl<T: Setting> Setting for Option<T> {
    const IS_PLAIN: bool = T::IS_PLAIN;
}

macro_rules! settings {
    (
        $(#[$doc:meta])*
        $table:ident {
            $($(#[$of:meta])* $key:ident: $type:ty = $default:expr, $about:literal;)*
            $([$inner:ident] $inner_type:ty;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        pub struct $table {
            $(#[doc = $about] $(#[$of])* pub $key: $type,)*
            $(#[doc = concat!("Settings of the table `", stringify!($inner), "`.")] pub $inner: $inner_type,)*
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($key: $default,)* $($inner: Default::default(),)* }
            }
        }

        impl $table {
            pub(crate) fn keys() -> Vec<$crate::settings::Key> {
                use $crate::settings::{Key, Setting};
                #[allow(unused_mut, reason = "not every table has tables in it")]
                let mut keys = vec![$(Key {
                    name: stringify!($key).replace('_', "-"),
                    about: $about,
                    is_plain: <$type as Setting>::IS_PLAIN,
                }),*];
                $(keys.extend(<$inner_type>::keys().into_iter().map(|key| key.in_table(stringify!($inner))));)*
                keys
            }
        }
    };
}
pub(crate) use settings;
