package console

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// progressAfter is the delay until progress is shown.
	progressAfter = time.Second
	// progressInterval is the interval at which progress is updated on a terminal.
	progressInterval = 200 * time.Millisecond
)

// clearLine clears the current line of a terminal (ECMA-48).
const clearLine = "\r\x1b[K"

// Progress shows the progress of slow steps on standard error. On a terminal it updates one line. Elsewhere it prints
// the text
// once.
type Progress struct {
	console *Console
	stop    chan struct{}
	ended   sync.WaitGroup

	mu   sync.Mutex
	text string
}

// Begin starts to show progress. The caller must call End.
func (c *Console) Begin(text string) *Progress {
	p := &Progress{console: c, text: text, stop: make(chan struct{})}
	p.ended.Go(p.run)
	return p
}

// Say replaces the progress text.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

// End removes the text from a terminal.
func (p *Progress) End() {
	close(p.stop)
	p.ended.Wait()
}

func (p *Progress) run() {
	select {
	case <-p.stop:
		return
	case <-p.console.Clock.After(progressAfter):
	}
	err := p.console.Err
	if !p.console.IsInteractive() {
		fmt.Fprintln(err, p.said())
		<-p.stop
		return
	}
	for {
		fmt.Fprint(err, clearLine+p.said())
		select {
		case <-p.stop:
			fmt.Fprint(err, clearLine)
			return
		case <-p.console.Clock.After(progressInterval):
		}
	}
}

func (p *Progress) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text + " …"
}

// syncWriter serializes concurrent writes, such as progress and warnings.
type syncWriter struct {
	mu     sync.Mutex
	writer io.Writer
}

// Write writes the text.
func (o *syncWriter) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writer.Write(text)
}

func (o *syncWriter) redirect(to io.Writer) (before io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, o.writer = o.writer, to
	return before
}

// IsInteractive reports whether standard error is a terminal.
func (c *Console) IsInteractive() bool { return c.Err.Width > 0 }

// Warn prints a warning on standard error.
func (c *Console) Warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if c.IsInteractive() {
		text = clearLine + text
	}
	fmt.Fprintln(c.Err, text)
}
