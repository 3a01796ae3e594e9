package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed assets
var files embed.FS

// asset is a file that is the same for all viewers.
type asset struct {
	kind    string
	plain   []byte
	zipped  []byte
	forever bool
}

// assets are all files by their paths. All except the page itself are in a directory that is named after their
// content, so that
// browsers can cache them forever.
type assets map[string]*asset

const (
	// placeholder stands for that directory in the page, and wordsPlaceholder for the meaning of words.
	placeholder      = "ASSETS"
	wordsPlaceholder = "WORDS"
	// pagePath is the path of the page.
	pagePath = "/"
)

func loadAssets() (assets, error) {
	found := assets{}
	content := map[string][]byte{}
	err := fs.WalkDir(files, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		read, err := files.ReadFile(name)
		content[path.Base(name)] = read
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the assets: %w", err)
	}
	digest := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(content)) {
		fmt.Fprintf(digest, "%s %d\n%s", name, len(content[name]), content[name])
	}
	meaning, err := json.Marshal(meaningOfWords())
	if err != nil {
		return nil, fmt.Errorf("encode the meaning of words: %w", err)
	}
	directory := "/assets/" + hex.EncodeToString(digest.Sum(nil))[:16]
	for name, read := range content {
		at, forever := directory+"/"+name, true
		if name == "index.html" {
			at, forever = pagePath, false
			read = bytes.ReplaceAll(read, []byte(placeholder), []byte(directory))
			read = bytes.ReplaceAll(read, []byte(wordsPlaceholder), []byte(html.EscapeString(string(meaning))))
		}
		zipped, err := zip(read)
		if err != nil {
			return nil, err
		}
		found[at] = &asset{kind: kindOf(name), plain: read, zipped: zipped, forever: forever}
	}
	return found, nil
}

// kindOf returns the media type of a file. It does not depend on the configuration of the machine.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".html":
		return "text/html; charset=utf-8"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func zip(plain []byte) ([]byte, error) {
	var zipped bytes.Buffer
	writer, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(plain); err != nil {
		return nil, err
	}
	err = writer.Close()
	return zipped.Bytes(), err
}

// ServeHTTP serves a file.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found := a[r.URL.Path]
	if found == nil {
		http.NotFound(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", found.kind)
	header.Set("Vary", "Accept-Encoding")
	header.Set("Cache-Control", "no-cache")
	if found.forever {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body := found.plain
	if acceptsGzip(r) {
		body = found.zipped
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may have disconnected
	}
}

func acceptsGzip(r *http.Request) bool {
	for _, accepted := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(accepted), ";")
		if name == "gzip" && strings.ReplaceAll(quality, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
