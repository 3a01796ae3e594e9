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
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

const (
	// drawEvery is how often changes of ManagedResources are shown at most. Keys are answered at once.
	drawEvery = 100 * time.Millisecond
	// tick is how often ages are brought up to date.
	tick = time.Second
)

// program does what the model decides. One goroutine has the model and the terminal; others send it what is to be done to the model.
type program struct {
	console  *console.Console
	terminal tcell.Screen
	// follow fills the mailbox until the context ends.
	follow   func(context.Context)
	mailbox  *mailbox
	model    *model
	messages chan func(*model)
	// others are the goroutines that read, follow and ask.
	others sync.WaitGroup
	// endRead ends the reading of what is opened.
	endRead context.CancelFunc
}

func newProgram(c *console.Console, terminal tcell.Screen, follow func(context.Context), box *mailbox) *program {
	return &program{
		console: c, terminal: terminal, follow: follow, mailbox: box, model: &model{now: c.Clock.Now()}, messages: make(chan func(*model), 16), endRead: func() {},
	}
}

// run shows what there is until a person quits, and gives the terminal back, also if something panics.
func (p *program) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer p.others.Wait()
	defer cancel()
	defer p.terminal.Fini() // first, whatever the others do
	colours := p.console.Screen.Colours
	diverted, end := p.console.Divert(teller(p.messages))
	defer end()
	p.console = diverted
	_, _ = p.console.Target() // once and for all; what is wrong with it is said where it is needed
	p.goOn(ctx, func() func(*model) {
		p.follow(ctx)
		return nil
	})
	events := make(chan tcell.Event)
	p.goOn(ctx, func() func(*model) {
		p.terminal.ChannelEvents(events, ctx.Done())
		return nil
	})
	ticker := p.console.Clock.NewTicker(tick)
	defer ticker.Stop()
	p.model.resize(p.terminal.Size())
	news := p.mailbox.news
	var rested <-chan time.Time
	for {
		p.readOpened(ctx)
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

// handle takes in what happened on the terminal. It returns true if that is all.
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

// press takes in a key. It returns true if it quits.
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

// goOn does something beside, and then something to the model.
func (p *program) goOn(ctx context.Context, work func() func(*model)) {
	p.others.Go(func() {
		defer func() {
			if problem := recover(); problem != nil { // in the goroutine that gives the terminal back
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

// readOpened reads what is opened, if it has to be.
func (p *program) readOpened(ctx context.Context) {
	name, wanted := p.model.wantsRead()
	if !wanted {
		return
	}
	p.model.reads()
	ctx, p.endRead = context.WithCancel(ctx)
	p.goOn(ctx, func() func(*model) {
		read, err := read(ctx, p.console, name)
		if err != nil {
			return func(m *model) { m.hasRead(name, nil, p.console.Explain(err)) }
		}
		return func(m *model) { m.hasRead(name, read, nil) }
	})
}

// ask asks a person whether to reconcile, if that is permitted.
func (p *program) ask(ctx context.Context, name types.NamespacedName) {
	p.goOn(ctx, func() func(*model) {
		source, err := p.console.Source()
		allowed := true
		if err == nil {
			if may, err := source.May(ctx, "patch", name); err == nil { // otherwise the attempt tells
				allowed = may
			}
		}
		return func(m *model) {
			if !allowed {
				m.status = fmt.Sprintf("You may not reconcile %s: that takes the permission to patch managedresources.", name)
				return
			}
			m.asked = &name
		}
	})
}

func (p *program) reconcile(ctx context.Context, name types.NamespacedName) {
	p.goOn(ctx, func() func(*model) {
		said, err := act.Reconcile(ctx, p.console, name)
		if err != nil {
			said = fmt.Sprintf("not reconciled: %v", p.console.Explain(err))
		}
		return func(m *model) { m.status = fmt.Sprintf("managedresource %s: %s", name, said) }
	})
}

// teller shows what is said on standard error.
type teller chan<- func(*model)

// Write shows a text, in one line. It does not wait, for it may be called by the one who shows it.
func (t teller) Write(text []byte) (int, error) {
	said := screen.OneLine(string(text))
	select {
	case t <- func(m *model) { m.status = said }:
	default:
	}
	return len(text), nil
}
