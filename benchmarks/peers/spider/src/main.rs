//! The bench's spider-rs runner: crawl every page of the start URL's domain, write url, status and title as JSON lines.
//!
//! The library extracts the links itself and does not hand them out, so the rows carry no link list; it still does that work.
//!
//! usage: spider-bench START_URL PART OUT CONCURRENCY   (PART is implied by "subdomains": kept so that all runners take the same words)
use spider::tokio;
use spider::website::Website;
use std::fs::File;
use std::io::{BufWriter, Write};

/// The text of the first <title>, found without a tree: the library has parsed the page already.
fn title(html: &str) -> &str {
    let Some(open) = html.find("<title") else { return "" };
    let Some(start) = html[open..].find('>').map(|i| open + i + 1) else { return "" };
    match html[start..].find("</title") {
        Some(length) => html[start..start + length].trim(),
        None => "",
    }
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() != 5 {
        eprintln!("usage: spider-bench START_URL PART OUT CONCURRENCY");
        std::process::exit(2);
    }
    let concurrency: usize = args[4].parse().expect("CONCURRENCY is a number");
    let mut site = Website::new(&args[1]);
    site.with_respect_robots_txt(false)
        .with_subdomains(true)
        .with_tld(true)
        .with_delay(0)
        .with_concurrency_limit(Some(concurrency))
        .with_limit(u32::MAX);
    let mut pages = site.subscribe(16384);
    let out = args[3].clone();
    let writer = tokio::spawn(async move {
        let mut lines = BufWriter::new(File::create(out).expect("OUT can be written"));
        while let Ok(page) = pages.recv().await {
            let html = page.get_html();
            let row = serde_json::json!({"url": page.get_url(), "status": page.status_code.as_u16(), "title": title(&html)});
            writeln!(lines, "{row}").expect("OUT can be written");
        }
        lines.flush().expect("OUT can be written");
    });
    site.crawl().await;
    site.unsubscribe();
    writer.await.expect("the writer ends");
}
