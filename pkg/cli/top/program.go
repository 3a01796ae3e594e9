package top

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gdamore/tcell/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/cli/act"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

const (
	// drawEvery is the minimum interval between redraws for changes of ManagedResources. Keys are handled immediately.
	drawEvery = 100 * time.Millisecond
	// tick is the interval at which ages are updated.
	tick = time.Second
)

// program executes the decisions of the model. One goroutine owns the model and the terminal. Other goroutines send
// it changes of the
// model.
type program struct {
	console  *console.Console
	terminal tcell.Screen
	// follow fills the mailbox until the context is canceled.
	follow   func(context.Context)
	mailbox  *mailbox
	model    *model
	messages chan func(*model)
	// others are the goroutines that read, watch and check permissions.
	others sync.WaitGroup
	// endRead cancels the read of the opened ManagedResource.
	endRead context.CancelFunc
}

func newProgram(c *console.Console, terminal tcell.Screen, follow func(context.Context), box *mailbox) *program {
	return &program{
		console: c, terminal: terminal, follow: follow, mailbox: box, model: &model{now: c.Clock.Now()},
		messages: make(chan func(*model), 16), endRead: func() {},
	}
}

// run shows ManagedResources until the user quits. It restores the terminal even after a panic.
func (p *program) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer p.others.Wait()
	defer cancel()
	defer p.terminal.Fini() // restore the terminal first, even if other goroutines are still running
	colours := p.console.Screen.Colours
	diverted, end := p.console.Divert(statusWriter(p.messages))
	defer end()
	p.console = diverted
	_, _ = p.console.Target() // set it up once; errors are reported where it is used
	p.runInBackground(ctx, func() func(*model) {
		p.follow(ctx)
		return nil
	})
	events := make(chan tcell.Event)
	p.runInBackground(ctx, func() func(*model) {
		p.terminal.ChannelEvents(events, ctx.Done())
		return nil
	})
	ticker := p.console.Clock.NewTicker(tick)
	defer ticker.Stop()
	p.model.resize(p.terminal.Size())
	news := p.mailbox.news
	var rested <-chan time.Time
	p.model.ownerReadAt = p.model.now
	for {
		p.readOpened(ctx)
		p.readOwner(ctx)
		draw(p.terminal, p.model.view(), colours)
		select {
		case <-ctx.Done():
			return nil
		case event := <-events:
			if done, err := p.handle(ctx, event); done || err != nil {
				return err
			}
		case <-news:
			changes, err := p.mailbox.take()
			if err != nil {
				return err
			}
			p.model.now = p.console.Clock.Now()
			p.model.take(changes)
			news, rested = nil, p.console.Clock.After(drawEvery)
		case <-rested:
			news, rested = p.mailbox.news, nil
		case <-ticker.C():
		case message := <-p.messages:
			p.model.now = p.console.Clock.Now()
			message(p.model)
		}
		p.model.now = p.console.Clock.Now()
	}
}

// handle handles a terminal event. It returns true to quit.
func (p *program) handle(ctx context.Context, event tcell.Event) (bool, error) {
	switch event := event.(type) {
	case nil: // the terminal is closed
		return true, nil
	case *tcell.EventError:
		return true, fmt.Errorf("read from the terminal: %w", event)
	case *tcell.EventResize:
		p.terminal.Sync()
		p.model.resize(p.terminal.Size())
	case *tcell.EventKey:
		for _, key := range keysOf(event) {
			if p.press(ctx, key) {
				return true, nil
			}
		}
	}
	return false, nil
}

// press handles a key. It returns true to quit.
func (p *program) press(ctx context.Context, key string) bool {
	opened := p.model.page
	do, name := p.model.press(key)
	if opened != nil && p.model.page != opened {
		p.endRead()
	}
	switch do {
	case quit:
		return true
	case askReconcile:
		p.ask(ctx, name)
	case reconcile:
		p.reconcile(ctx, name)
	}
	return false
}

// runInBackground runs work in the background, and then sends the change of the model that work returns.
func (p *program) runInBackground(ctx context.Context, work func() func(*model)) {
	p.others.Go(func() {
		defer func() {
			if problem := recover(); problem != nil { // panic in the goroutine that restores the terminal
				stack := debug.Stack()
				p.send(ctx, func(*model) { panic(fmt.Sprintf("%v\n%s", problem, stack)) })
			}
		}()
		if message := work(); message != nil {
			p.send(ctx, message)
		}
	})
}

func (p *program) send(ctx context.Context, message func(*model)) {
	select {
	case p.messages <- message:
	case <-ctx.Done():
	}
}

// readOpened reads the opened ManagedResource if it is due.
func (p *program) readOpened(ctx context.Context) {
	name, wanted := p.model.needsRead()
	if !wanted {
		return
	}
	p.model.startRead()
	ctx, p.endRead = context.WithCancel(ctx)
	p.runInBackground(ctx, func() func(*model) {
		read, err := read(ctx, p.console, name)
		if err != nil {
			return func(m *model) { m.finishRead(name, nil, p.console.Explain(err)) }
		}
		return func(m *model) { m.finishRead(name, read, nil) }
	})
}

// readOwner reads the Shoot or Seed if it is due.
func (p *program) readOwner(ctx context.Context) {
	if !p.model.startOwnerRead() {
		return
	}
	name := p.model.owner.Name
	p.runInBackground(ctx, func() func(*model) {
		owner, err := fleet.Read(ctx, p.console, name)
		return func(m *model) { m.finishOwnerRead(owner, err) }
	})
}

// ask asks the user to confirm a reconciliation, if the user may reconcile.
func (p *program) ask(ctx context.Context, name types.NamespacedName) {
	p.runInBackground(ctx, func() func(*model) {
		source, err := p.console.Source()
		allowed := true
		if err == nil {
			if may, err := source.May(ctx, "patch", name); err == nil { // on an error, the attempt reports the problem
				allowed = may
			}
		}
		return func(m *model) {
			if !allowed {
				m.status = fmt.Sprintf("You may not reconcile %s: this requires permission to patch managedresources.", name)
				return
			}
			m.asked = &name
		}
	})
}

func (p *program) reconcile(ctx context.Context, name types.NamespacedName) {
	p.runInBackground(ctx, func() func(*model) {
		result, err := act.Reconcile(ctx, p.console, name)
		if err != nil {
			result = fmt.Sprintf("not reconciled: %v", p.console.Explain(err))
		}
		return func(m *model) { m.status = fmt.Sprintf("managedresource %s: %s", name, result) }
	})
}

// statusWriter shows messages for standard error in the status line.
type statusWriter chan<- func(*model)

// Write shows a text in one line. It does not block, because the goroutine that draws may call it.
func (s statusWriter) Write(text []byte) (int, error) {
	line := screen.OneLine(string(text))
	select {
	case s <- func(m *model) { m.status = line }:
	default:
	}
	return len(text), nil
}
