// What containers write, in the format of the container runtime interface: a
// time, a stream, F for a full line or P for a part of one, and the text.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// keepLog copies lines into the file until nobody can write any more.
func keepLog(from io.ReadCloser, to io.WriteCloser) {
	defer from.Close()
	defer to.Close()
	reader := bufio.NewReaderSize(from, 16<<10)
	for {
		text, err := reader.ReadSlice('\n')
		if len(text) > 0 {
			tag := "P"
			if text[len(text)-1] == '\n' {
				tag, text = "F", text[:len(text)-1]
			}
			fmt.Fprintf(to, "%s stdout %s %s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000000000Z07:00"), tag, text)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// entry is one line of such a file.
type entry struct {
	time string
	text []byte
	full bool
}

// parseLog gives the entries, and the bytes of the last one if that is not whole yet.
func parseLog(text []byte) (all []entry, rest []byte) {
	for {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return all, text
		}
		words := bytes.SplitN(text[:end], []byte(" "), 4)
		text = text[end+1:]
		if len(words) == 4 {
			all = append(all, entry{string(words[0]), words[3], string(words[2]) == "F"})
		}
	}
}

// logReader is what a client of pods/log asks for.
type logReader struct {
	timestamps, follow bool
	since              time.Time
	tail, limit        int64 // -1: no limit
}

func newLogReader(query url.Values) logReader {
	q := logReader{timestamps: query.Get("timestamps") == "true", follow: query.Get("follow") == "true", tail: -1, limit: -1}
	if seconds, err := strconv.ParseInt(query.Get("sinceSeconds"), 10, 64); err == nil {
		q.since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	if at, err := time.Parse(time.RFC3339Nano, query.Get("sinceTime")); err == nil {
		q.since = at
	}
	if lines, err := strconv.ParseInt(query.Get("tailLines"), 10, 64); err == nil {
		q.tail = lines
	}
	if bytes, err := strconv.ParseInt(query.Get("limitBytes"), 10, 64); err == nil {
		q.limit = bytes
	}
	return q
}

// last leaves as many lines as were asked for.
func (q *logReader) last(all []entry) []entry {
	if q.tail < 0 {
		return all
	}
	lines := int64(0)
	for i := len(all) - 1; i >= 0; i-- {
		// A part at the end is the beginning of a line.
		if all[i].full || i == len(all)-1 {
			if lines == q.tail {
				return all[i+1:]
			}
			lines++
		}
	}
	return all
}

// write says whether more may be written.
func (q *logReader) write(w io.Writer, all []entry) bool {
	for _, e := range all {
		if at, err := time.Parse(time.RFC3339Nano, e.time); err == nil && at.Before(q.since) {
			continue
		}
		line := []byte{}
		if q.timestamps {
			line = append(line, e.time+" "...)
		}
		line = append(line, e.text...)
		if e.full {
			line = append(line, '\n')
		}
		if q.limit >= 0 && int64(len(line)) >= q.limit {
			w.Write(line[:q.limit])
			return false
		}
		if q.limit >= 0 {
			q.limit -= int64(len(line))
		}
		if _, err := w.Write(line); err != nil {
			return false
		}
	}
	return true
}

// logs serves GET /containerLogs/NS/POD/CONTAINER.
func (s *standin) logs(w http.ResponseWriter, q *http.Request) {
	words := strings.Split(q.URL.Path, "/")
	if len(words) < 5 {
		http.NotFound(w, q)
		return
	}
	r := s.asked(q, words[2], words[3])
	if r == nil {
		http.NotFound(w, q)
		return
	}
	c, path := r.logOf(words[4], q.URL.Query().Get("previous") == "true")
	if c == nil {
		http.NotFound(w, q)
		return
	}
	file, err := os.Open(path)
	if err != nil {
		http.Error(w, "container has no log yet", http.StatusBadRequest)
		return
	}
	defer file.Close()
	reader := newLogReader(q.URL.Query())
	var all, rest []byte
	var entries []entry
	for first := true; ; first = false {
		// Whether the container runs is read first: what it wrote before its end is there then.
		running := r.isRunning(c)
		all, _ = io.ReadAll(file)
		entries, rest = parseLog(append(rest, all...))
		if first {
			entries = reader.last(entries)
		}
		if !reader.write(w, entries) || !reader.follow || !running || q.Context().Err() != nil {
			return
		}
		w.(http.Flusher).Flush()
		time.Sleep(50 * time.Millisecond)
	}
}

// lastWords is the end of a log, for terminationMessagePolicy FallbackToLogsOnError.
func lastWords(path string) string {
	text, _ := os.ReadFile(path)
	entries, _ := parseLog(text)
	var out bytes.Buffer
	q := logReader{tail: 80, limit: -1}
	q.write(&out, q.last(entries))
	return string(out.Bytes()[max(0, out.Len()-2048):])
}
