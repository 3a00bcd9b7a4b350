use crate::archive::problem::{Problem, Problems};
use crate::archive::{Error, Result};
use crate::store::Loss;

/// Adds a problem and returns `None` if an object is missing or damaged. Any other failure stays an
/// error.
pub(super) fn needed<T, E: Into<Error>>(
    read: std::result::Result<T, E>,
    problems: &mut Problems,
) -> Result<Option<T>> {
    match read.map_err(Into::into) {
        Ok(found) => Ok(Some(found)),
        Err(Error::Store(error)) if error.is_loss() => {
            problems.push(Problem::Broken { why: error.to_string() });
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
