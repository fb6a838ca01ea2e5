#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| takeup_tests::readers::status_file(bytes));
