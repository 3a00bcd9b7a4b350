//! Imports backups of this program, or those that SillyTavern makes of chats.

mod backup_owner;
pub mod chat_backups;
pub mod stvc_backup;
