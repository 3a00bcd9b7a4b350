//! Take in what is elsewhere: backups of this program's, or those that SillyTavern itself makes of chats.

mod backup_owner;
pub mod chat_backups;
pub mod stvc_backup;
