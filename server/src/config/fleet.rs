//! `radixscope fleet`: the members, as the command line or a file names them: `NAME=URL[,KEY=VALUE]…`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use url::Url;

use super::http_base::http_base;
use super::redacted::Redacted;
use super::{InvalidOption, Log, Secret, Serving, seconds_to_minute};

/// Most members: each is a row of the page and a request every few seconds.
const MAX_MEMBERS: usize = 500;
/// Longest name of a member, characters.
const MAX_NAME_CHARS: usize = 64;
/// Largest file of members.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Largest file with a token or a login.
const MAX_SECRET_BYTES: u64 = 4_096;
/// What is expected, in errors.
const EXPECTED: &str =
    "expected NAME=URL[,link=URL][,token-file=FILE|token-env=VARIABLE|login-file=FILE|login-env=VARIABLE]";

/// `radixscope fleet`.
#[derive(Args, Debug)]
pub struct Fleet {
    /// The members.
    #[command(flatten)]
    pub members: Members,
    /// Where and to whom it is served.
    #[command(flatten)]
    pub serving: Serving,
    /// Log.
    #[command(flatten)]
    pub log: Log,
}

/// The Radixscopes that are asked.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Members")]
pub struct Members {
    /// A Radixscope: its name on the page and its address, as NAME=URL[,KEY=VALUE]…; link=URL is the address of its page for
    /// browsers, if that is another; token-file=FILE or token-env=VARIABLE has its access token, login-file= or login-env= a login
    /// USER:PASSWORD for a proxy before it; can be repeated, or separated by semicolons
    #[arg(long, env = "RADIXSCOPE_MEMBER", value_name = "NAME=URL", value_delimiter = ';', hide_env_values = true, value_parser = Redacted(member))]
    pub member: Vec<MemberAt>,
    /// File with members, one a line as for --member; empty lines and lines that begin with # are skipped
    #[arg(long, env = "RADIXSCOPE_MEMBERS_FILE", value_name = "FILE")]
    pub members_file: Option<PathBuf>,
    /// How often each member is asked, in seconds
    #[arg(long, env = "RADIXSCOPE_POLL_INTERVAL", value_name = "S", default_value = "5", value_parser = seconds_to_minute)]
    pub poll_interval: Duration,
    /// How long an answer may take, in seconds
    #[arg(long, env = "RADIXSCOPE_POLL_TIMEOUT", value_name = "S", default_value = "3", value_parser = seconds_to_minute)]
    pub poll_timeout: Duration,
    /// Certificates of the authorities to trust, as a PEM file [default: the system's]
    #[arg(long, env = "RADIXSCOPE_MEMBER_TLS_CA", value_name = "FILE")]
    pub member_tls_ca: Option<PathBuf>,
}

impl Members {
    /// All members, of options and file.
    ///
    /// # Errors
    /// There is none, there are too many, two have one name, or the file or a secret cannot be read.
    pub fn list(&self) -> Result<Vec<MemberAt>, InvalidOption> {
        let mut all = self.member.clone();
        if let Some(path) = &self.members_file {
            let option = format!("--members-file {}", path.display());
            let text = read_bounded(path, MAX_FILE_BYTES).map_err(|why| InvalidOption::new(&option, why))?;
            for (at, line) in text.lines().enumerate() {
                let line = line.trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let bad = |why| InvalidOption::new(format!("{option}, line {}", at + 1), why);
                all.push(member(line).map_err(bad)?);
            }
        }
        if all.is_empty() {
            return Err(InvalidOption::new("no member", "give --member NAME=URL or --members-file FILE"));
        }
        if all.len() > MAX_MEMBERS {
            return Err(InvalidOption::new(
                "--member",
                format!("{} members; the maximum is {MAX_MEMBERS}", all.len()),
            ));
        }
        let mut names: Vec<&str> = all.iter().map(|member| member.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(InvalidOption::new("--member", format!("two members have the name {:?}", twice[0])));
        }
        for member in &all {
            member
                .login
                .authorization()
                .map_err(|why| InvalidOption::new(format!("member {}", member.name), why))?;
        }
        Ok(all)
    }
}

/// A Radixscope that is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberAt {
    /// Its name.
    pub name: String,
    /// Where it is asked; ends in a slash.
    pub url: Url,
    /// Its page for browsers; ends in a slash.
    pub link: Url,
    /// What it asks for before it answers.
    pub login: MemberLogin,
}

/// Where what a member asks for is read from: at each request, so that a secret may be renewed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberLogin {
    /// It asks for nothing.
    Open,
    /// Its access token.
    Token(SecretAt),
    /// `USER:PASSWORD` for a proxy before it.
    Basic(SecretAt),
}

/// Where a secret is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SecretAt {
    /// In a file.
    File(PathBuf),
    /// In a variable of the environment.
    Variable(String),
}

impl SecretAt {
    fn read(&self) -> Result<Secret, String> {
        let text = match self {
            Self::File(path) => read_bounded(path, MAX_SECRET_BYTES)
                .map_err(|why| format!("{} cannot be read: {why}", path.display()))?,
            Self::Variable(name) => {
                std::env::var(name).map_err(|_| format!("the variable {name} is not set"))?
            }
        };
        let text = text.trim();
        if text.is_empty() || !text.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
            let place = match self {
                Self::File(path) => path.display().to_string(),
                Self::Variable(name) => format!("the variable {name}"),
            };
            return Err(format!("{place}: expected printable ASCII characters"));
        }
        Ok(Secret::from(text.to_owned()))
    }
}

impl MemberLogin {
    /// Value of the header `Authorization`; `None`: none is sent.
    ///
    /// # Errors
    /// The secret cannot be read. The text does not repeat it.
    pub fn authorization(&self) -> Result<Option<Secret>, String> {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        Ok(match self {
            Self::Open => None,
            Self::Token(at) => Some(Secret::from(format!("Bearer {}", at.read()?.reveal()))),
            Self::Basic(at) => {
                let login = at.read()?;
                if !login.reveal().contains(':') {
                    return Err("the login has no colon; expected USER:PASSWORD".to_owned());
                }
                Some(Secret::from(format!("Basic {}", STANDARD.encode(login.reveal()))))
            }
        })
    }
}

fn read_bounded(path: &std::path::Path, most: u64) -> Result<String, String> {
    use std::io::Read as _;
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(most + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if read as u64 > most { Err(format!("it is larger than {most} bytes")) } else { Ok(text) }
}

fn member(text: &str) -> Result<MemberAt, String> {
    text.parse()
}

impl FromStr for MemberAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        let (name, address) = first.split_once('=').ok_or(EXPECTED)?;
        let name = name.trim();
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ' ');
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || !name.chars().all(is_plain) {
            return Err(format!(
                "a name has 1 to {MAX_NAME_CHARS} letters, digits, spaces and - _ . /; {EXPECTED}"
            ));
        }
        let url = http_base(address.trim())?;
        let (mut link, mut login) = (None, None);
        for part in parts {
            let (key, value) =
                part.split_once('=').ok_or_else(|| format!("a part has no value; {EXPECTED}"))?;
            let is_again = match key {
                "link" => link.replace(http_base(value).map_err(|why| format!("link: {why}"))?).is_some(),
                "token-file" => login.replace(MemberLogin::Token(SecretAt::File(value.into()))).is_some(),
                "token-env" => {
                    login.replace(MemberLogin::Token(SecretAt::Variable(value.to_owned()))).is_some()
                }
                "login-file" => login.replace(MemberLogin::Basic(SecretAt::File(value.into()))).is_some(),
                "login-env" => {
                    login.replace(MemberLogin::Basic(SecretAt::Variable(value.to_owned()))).is_some()
                }
                _ => return Err(format!("unknown key; {EXPECTED}")),
            };
            if is_again {
                return Err(format!("{key}: one link, and one token or login; {EXPECTED}"));
            }
        }
        let link = link.unwrap_or_else(|| url.clone());
        Ok(Self { name: name.to_owned(), url, link, login: login.unwrap_or(MemberLogin::Open) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(member: &[&str], members_file: Option<PathBuf>) -> Result<Vec<MemberAt>, InvalidOption> {
        let member = member.iter().map(|text| text.parse().unwrap()).collect();
        let (poll_interval, poll_timeout) = (Duration::from_secs(5), Duration::from_secs(3));
        Members { member, members_file, poll_interval, poll_timeout, member_tls_ca: None }.list()
    }

    #[test]
    fn a_member_has_a_name_an_address_and_where_browsers_find_it() {
        let plain: MemberAt = "eu-1=radix.eu:8321".parse().unwrap();
        assert_eq!(
            (plain.url.as_str(), plain.link.as_str()),
            ("http://radix.eu:8321/", "http://radix.eu:8321/")
        );
        let all: MemberAt =
            "us east=http://10.0.0.5:8321/r,link=https://radix.example/us,token-env=T".parse().unwrap();
        assert_eq!((all.name.as_str(), all.url.as_str()), ("us east", "http://10.0.0.5:8321/r/"));
        assert_eq!(all.link.as_str(), "https://radix.example/us/");
        assert_eq!(all.login, MemberLogin::Token(SecretAt::Variable("T".to_owned())));
    }

    #[test]
    fn what_is_no_name_or_no_address_is_refused_without_repeating_it() {
        let long = format!("{}=http://a", "n".repeat(65));
        for text in [
            "",
            "a",
            "=http://a",
            "<script>=http://a",
            "a\u{202e}b=http://a",
            "a\nb=http://a",
            &long,
            "a=ftp://a",
            "a=http://u:hidden@a",
            "a=http://a,token=hidden",
            "a=http://a,link",
            "a=javascript://a",
            "a=http://a,link=javascript://a",
            "a=http://a,token-env=A,login-env=B",
            "a=http://a,link=http://b,link=http://c",
        ] {
            let why = text.parse::<MemberAt>().unwrap_err();
            assert!(!why.contains("hidden") && !why.contains("script>"), "{why}");
        }
    }

    #[test]
    fn members_of_a_file_follow_those_of_options_and_names_are_unique() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# ours\n\n b=http://b \n").unwrap();
        let path = Some(file.path().to_owned());
        let names: Vec<_> =
            members(&["a=http://a"], path.clone()).unwrap().into_iter().map(|m| m.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(
            members(&["b=http://c"], path).unwrap_err().to_string().contains("two members have the name")
        );
        std::fs::write(file.path(), "b=http://b\nc=").unwrap();
        let error = members(&[], Some(file.path().to_owned())).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        assert!(members(&[], None).is_err());
    }

    #[test]
    fn secrets_are_read_at_each_request_and_show_nowhere() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let of =
            |key: &str| format!("a=http://a,{key}={}", file.path().display()).parse::<MemberAt>().unwrap();
        let (token, login) = (of("token-file"), of("login-file"));
        std::fs::write(file.path(), "first\n").unwrap();
        assert_eq!(token.login.authorization().unwrap().unwrap().reveal(), "Bearer first");
        assert!(login.login.authorization().unwrap_err().contains("USER:PASSWORD"));
        std::fs::write(file.path(), "bob:x\n").unwrap();
        assert_eq!(login.login.authorization().unwrap().unwrap().reveal(), "Basic Ym9iOng=");
        assert!(!format!("{:?}", login.login.authorization()).contains("Ym9i"));
        std::fs::write(file.path(), "x".repeat(5_000)).unwrap();
        assert!(token.login.authorization().unwrap_err().contains("larger than"));
        let missing: MemberAt = "a=http://a,token-file=/nowhere/token".parse().unwrap();
        assert!(missing.login.authorization().unwrap_err().contains("cannot be read"));
    }
}
