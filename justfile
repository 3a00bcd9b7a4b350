# Short names for commands that also work without just.

# List the recipes.
_default:
    @just --list

# Check a change in five minutes: format, lints, unit tests, tests of the program, a sample of the sweep.
check:
    .ci/check

# Run every check that a change must pass.
ci:
    .ci/run

# Run the tests of a subject: `just test undo::`.
test *NAMES:
    cargo test --locked --test stvc -- {{ NAMES }}

# Update docs/cli.md after a change of a command's help.
docs:
    UPDATE_DOCS=1 cargo test --locked --bin stvc reference

# Interrupt every command that writes at every step. Takes less than an hour on two cores.
sweep:
    cargo test --locked --release --test sweep -- --whole

# Fuzz all targets, or the named ones, for a number of seconds.
fuzz SECONDS="60" *TARGETS:
    fuzz/run {{ SECONDS }} {{ TARGETS }}

# Mutate the code of a folder and check that the tests fail: `just mutants src/store`.
mutants FOLDER:
    cargo mutants --file '{{ FOLDER }}/**'

# Build the archives and the npm packages of a release into dist.
dist:
    packaging/build
    node packaging/npm/pack.mjs

# Install the archives and packages in dist as users do, and run them.
try:
    packaging/try
