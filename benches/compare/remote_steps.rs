//! The measured steps of a remote, and the quantities of each.

/// The steps of the life of a remote, in the order of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Create,
    First,
    Save,
    Nothing,
    Join,
    Restore,
}

impl Step {
    pub const ALL: [Step; 6] =
        [Step::Create, Step::First, Step::Save, Step::Nothing, Step::Join, Step::Restore];

    pub fn label(self) -> &'static str {
        match self {
            Step::Create => "create the remote",
            Step::First => "first backup",
            Step::Save => "a save of one message",
            Step::Nothing => "nothing new",
            Step::Join => "new device: add the remote",
            Step::Restore => "new device: restore",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    Requests,
    Sent,
    Received,
    Time,
    Memory,
}

impl Quantity {
    pub fn label(self) -> &'static str {
        match self {
            Quantity::Requests => "requests",
            Quantity::Sent => "sent",
            Quantity::Received => "received",
            Quantity::Time => "time",
            Quantity::Memory => "memory",
        }
    }
}
