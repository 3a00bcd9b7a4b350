//! A copy of the store elsewhere. To folders and servers the engine brings what is new ([`copies`](crate::engine::copies)); a file is written here.

pub mod file;
