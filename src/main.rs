//! The `stvc` program; all of it is in the library.

fn main() -> std::process::ExitCode {
    stvc::cli::main()
}
