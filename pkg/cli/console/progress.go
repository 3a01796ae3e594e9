package console

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// progressAfter is how long something may take before it is told that it is going on.
	progressAfter = time.Second
	// progressInterval is how often what is told is renewed on a terminal.
	progressInterval = 200 * time.Millisecond
)

// clearLine takes back what is on the line of a terminal (ECMA-48).
const clearLine = "\r\x1b[K"

// Progress tells on standard error what takes long: on a terminal in one line that is renewed, elsewhere once.
type Progress struct {
	console *Console
	stop    chan struct{}
	ended   sync.WaitGroup

	mu   sync.Mutex
	text string
}

// Begin starts something that may take long. End must be called.
func (c *Console) Begin(text string) *Progress {
	p := &Progress{console: c, text: text, stop: make(chan struct{})}
	p.ended.Go(p.run)
	return p
}

// Say replaces what is told.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

// End takes back what was told on a terminal.
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
	if !p.console.Talks() {
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

// orderly lets several write at once, as progress and warnings do.
type orderly struct {
	mu     sync.Mutex
	writer io.Writer
}

// Write writes all of a text.
func (o *orderly) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writer.Write(text)
}

func (o *orderly) redirect(to io.Writer) (before io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, o.writer = o.writer, to
	return before
}

// Talks tells whether standard error is a terminal.
func (c *Console) Talks() bool { return c.Err.Width > 0 }

// Warn tells something on standard error that does not keep the command from going on.
func (c *Console) Warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if c.Talks() {
		text = clearLine + text
	}
	fmt.Fprintln(c.Err, text)
}
