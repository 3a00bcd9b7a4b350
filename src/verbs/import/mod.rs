//! Imports backups that stvc created, and backups that SillyTavern created of single chats.

mod backup_owner;
pub mod chat_backups;
pub mod stvc_backup;
