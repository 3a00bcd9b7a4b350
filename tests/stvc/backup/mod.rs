//! Backups in a file: everything comes back byte for byte, and what is not a sound backup changes nothing.

mod bringing_back;
mod hostile_files;
mod passphrases;
mod writing;
