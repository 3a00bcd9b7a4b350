//! The watch as a scheduled task of Windows. The task is defined in an XML file for `schtasks
//! /Create /XML`, because without a file `schtasks` accepts at most 262 characters for the command
//! line of a task.

/// Returns the name of the Windows user. Only an administrator could create a task that does not
/// name its user.
pub(super) fn user() -> Option<String> {
    let name = std::env::var("USERNAME").ok()?;
    Some(match std::env::var("USERDOMAIN") {
        Ok(domain) => format!("{domain}\\{name}"),
        Err(_) => name,
    })
}

/// Returns the XML definition of the task in UTF-16, which `schtasks` reads. `line` is the command
/// line, escaped for XML.
pub(super) fn task(description: &str, line: &str, user: Option<&str>) -> Vec<u8> {
    let text = xml(description, line, user);
    [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

fn xml(description: &str, line: &str, user: Option<&str>) -> String {
    let user = user.map(|user| format!("<UserId>{}</UserId>", escape(user))).unwrap_or_default();
    // Without `conhost.exe --headless`, a console program would open a window.
    format!(
        r#"<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo><Description>{}</Description></RegistrationInfo>
  <Triggers><LogonTrigger><Enabled>true</Enabled>{user}</LogonTrigger></Triggers>
  <Principals><Principal id="Author">{user}<LogonType>InteractiveToken</LogonType><RunLevel>LeastPrivilege</RunLevel></Principal></Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Priority>7</Priority>
    <RestartOnFailure><Interval>PT1M</Interval><Count>10</Count></RestartOnFailure>
  </Settings>
  <Actions Context="Author"><Exec><Command>conhost.exe</Command><Arguments>--headless {line}</Arguments></Exec></Actions>
</Task>
"#,
        escape(description)
    )
}

/// Quotes a word for a Windows command line. Doubles every backslash directly before a quote.
pub(super) fn argument(word: &str) -> String {
    let mut out = String::from("\"");
    let mut backslashes = 0;
    for c in word.chars() {
        match c {
            '\\' => backslashes += 1,
            '"' => {
                out.push_str(&"\\".repeat(backslashes + 1));
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        out.push(c);
    }
    out.push_str(&"\\".repeat(backslashes));
    out.push('"');
    out
}

/// Escapes text for XML. Drops control characters, which Windows paths cannot contain.
pub(super) fn escape(text: &str) -> String {
    let text: String = text.chars().filter(|c| *c >= ' ').collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_windows() {
        assert_eq!(argument(r"C:\Users\Ann & Bo\stvc.exe"), r#""C:\Users\Ann & Bo\stvc.exe""#);
        assert_eq!(argument(r"C:\data\"), r#""C:\data\\""#);
        assert_eq!(argument(r#"a\"b"#), r#""a\\\"b""#);
        assert_eq!(argument(""), "\"\"");
    }

    #[test]
    fn task_definition_is_xml_in_utf_16() {
        let words = [r"C:\Users\雨 & <Bo>\stvc.exe", "--data", r"C:\ST\data"].map(str::to_owned);
        let line = words.map(|word| escape(&argument(&word))).join(" ");
        let bytes = task("chats of A & B", &line, Some(r"HOME\雨"));
        assert_eq!(bytes[..2], [0xFF, 0xFE]);
        let script = "import sys, xml.etree.ElementTree as t; r = t.fromstring(sys.stdin.buffer.read()); \
                      n = '{http://schemas.microsoft.com/windows/2004/02/mit/task}'; \
                      print(*[r.find('.//' + n + x).text for x in ['Description', 'UserId', 'Arguments']], sep='\\n')";
        let mut command = std::process::Command::new("python3");
        command.args(["-X", "utf8", "-c", script]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        // Parse the XML with Python, if Python is installed.
        let Ok(mut child) = command.spawn() else { return };
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), &bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            String::from_utf8(output.stdout).unwrap().lines().collect::<Vec<_>>(),
            [
                "chats of A & B",
                r"HOME\雨",
                r#"--headless "C:\Users\雨 & <Bo>\stvc.exe" "--data" "C:\ST\data""#
            ]
        );
    }
}
