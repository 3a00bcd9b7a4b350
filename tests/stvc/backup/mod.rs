//! Backups in a file: everything is restored byte for byte, and an invalid backup changes nothing.

mod hostile_files;
mod importing;
mod passphrases;
mod writing;
