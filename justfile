# Short names for commands that also work without just.

# List the recipes.
_default:
    @just --list

# Give a verdict on a change within five minutes: format, lints, unit tests, tests of the program, a sample of the sweep.
check:
    .ci/check

# Run everything that must hold before a change lands.
ci:
    .ci/run

# Run the tests of a subject: `just test undo::`.
test *NAMES:
    cargo test --locked --test stvc -- {{ NAMES }}

# Write docs/cli.md again after a change of a command's words.
docs:
    UPDATE_DOCS=1 cargo test --locked --bin stvc reference

# Interrupt every command that writes at every step. Takes less than an hour on two cores.
sweep:
    cargo test --locked --release --test sweep -- --whole

# Fuzz each target, or those that are named, for so many seconds.
fuzz SECONDS="60" *TARGETS:
    fuzz/run {{ SECONDS }} {{ TARGETS }}

# Change the code of a folder here and there, and see whether the tests notice: `just mutants src/store`.
mutants FOLDER:
    cargo mutants --file '{{ FOLDER }}/**'

# Build the archives and the npm packages of a release into dist.
dist:
    packaging/build
    node packaging/npm/pack.mjs

# Install the archives and packages in dist as users do, and run them.
try:
    packaging/try
