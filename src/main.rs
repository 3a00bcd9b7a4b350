//! The `stvc` program: the front end for a person. What it does is done by the library of the same name.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
