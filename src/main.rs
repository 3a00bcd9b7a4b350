//! The `stvc` program: the command-line front end of the `stvc` library.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
