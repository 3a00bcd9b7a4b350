#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stvc::fuzzing::remote_object(data));
