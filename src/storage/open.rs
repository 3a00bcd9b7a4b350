use super::folder::FolderStorage;
use super::opendal::OpenDal;
use super::rclone::RcloneStorage;
use super::{Address, Credentials, Options, Result, Storage};

/// Returns the storage at an address. Sends no request.
pub fn open(address: &Address, login: &Credentials, options: Options) -> Result<Box<dyn Storage>> {
    Ok(match address {
        Address::Folder(path) => Box::new(FolderStorage::new(path)),
        Address::WebDav(address) => Box::new(OpenDal::webdav(address, login, options)?),
        Address::S3(address) => Box::new(OpenDal::s3(address, login, options)?),
        Address::Rclone(address) => Box::new(RcloneStorage::new(address, options)),
    })
}
