// The bench's Colly runner: crawl every page whose URL contains a part from one start URL, write url, status, title and links as JSON lines.
//
// usage: colly START_URL PART OUT CONCURRENCY
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/gocolly/colly/v2"
)

type row struct {
	URL    string   `json:"url"`
	Status int      `json:"status"`
	Title  string   `json:"title"`
	Links  []string `json:"links"`
}

// follow visits a link; a page seen before is Colly's ordinary refusal, not a failure of the run.
func follow(c *colly.Collector, url, part string) {
	if strings.Contains(url, part) {
		_ = c.Visit(url)
	}
}

func write(path string, rows <-chan row, done chan<- struct{}) {
	file, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	buffered := bufio.NewWriterSize(file, 1<<20)
	lines := json.NewEncoder(buffered)
	for r := range rows {
		if err := lines.Encode(r); err != nil {
			log.Fatal(err)
		}
	}
	if err := buffered.Flush(); err != nil {
		log.Fatal(err)
	}
	close(done)
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: colly START_URL PART OUT CONCURRENCY")
	}
	start, part, out := os.Args[1], os.Args[2], os.Args[3]
	parallel, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	c := colly.NewCollector(colly.Async(true), colly.MaxBodySize(10<<20))
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: parallel}); err != nil {
		log.Fatal(err)
	}
	rows, done := make(chan row, 1024), make(chan struct{})
	go write(out, rows, done)
	c.OnHTML("html", func(page *colly.HTMLElement) {
		links := []string{}
		page.ForEach("a[href]", func(_ int, a *colly.HTMLElement) {
			url := a.Request.AbsoluteURL(a.Attr("href"))
			links = append(links, url)
			follow(c, url, part)
		})
		rows <- row{page.Request.URL.String(), page.Response.StatusCode, strings.TrimSpace(page.ChildText("title")), links}
	})
	follow(c, start, part)
	c.Wait()
	close(rows)
	<-done
}
