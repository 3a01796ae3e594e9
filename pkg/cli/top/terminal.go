package top

import (
	"errors"
	"fmt"
	"os"

	"github.com/gdamore/tcell/v2"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
)

// instead recommends an alternative that needs no terminal.
const instead = "use `kubectl mr get -w`, which prints each change on its own line"

var errNoTerminal = errors.New("top needs a terminal: " + instead)

// openTerminal returns the terminal. Fini restores it.
func openTerminal(c *console.Console) (tcell.Screen, error) {
	if !c.Screen.IsTerminal() {
		return nil, errNoTerminal
	}
	if name := os.Getenv("TERM"); name == "" || name == "dumb" {
		return nil, fmt.Errorf("top does not support this terminal (TERM=%s): %s", name, instead)
	}
	tcell.SetEncodingFallback(tcell.EncodingFallbackUTF8)
	terminal, err := tcell.NewScreen()
	if err != nil {
		return nil, fmt.Errorf("top does not support this terminal (TERM=%s, %w): %s", os.Getenv("TERM"), err, instead)
	}
	return terminal, nil
}

// inASCII are replacements of characters for terminals that support only ASCII.
var inASCII = map[rune]string{'…': "~", '·': "-"}

// start switches a terminal to the alternate screen.
func start(terminal tcell.Screen) error {
	if err := terminal.Init(); err != nil {
		return fmt.Errorf("top does not support this terminal (%w): %s", err, instead)
	}
	for character, text := range inASCII {
		terminal.RegisterRuneFallback(character, text)
	}
	terminal.HideCursor()
	return nil
}

// draw shows lines on the terminal. The terminal library sends only the differences.
func draw(terminal tcell.Screen, lines []line, colours bool) {
	width, _ := terminal.Size()
	terminal.Clear()
	for y, each := range lines {
		x := 0
		for _, span := range each.spans {
			x = put(terminal, x, y, span.Text, styleOf(span.Style, colours).Reverse(each.chosen))
		}
		for ; each.chosen && x < width; x++ {
			terminal.Put(x, y, " ", tcell.StyleDefault.Reverse(true))
		}
	}
	terminal.Show()
}

// put writes a text, and returns the position after it.
func put(terminal tcell.Screen, x, y int, text string, style tcell.Style) int {
	for text != "" {
		rest, width := terminal.Put(x, y, text, style)
		if width == 0 { // beyond the edge
			return x
		}
		x, text = x+width, rest
	}
	return x
}

// styleOf returns the terminal style, with the same colours as package screen.
func styleOf(style screen.Style, colours bool) tcell.Style {
	result := tcell.StyleDefault
	switch {
	case style == screen.Strong:
		return result.Bold(true)
	case !colours:
		return result
	case style == screen.Bad:
		return result.Foreground(tcell.PaletteColor(1))
	case style == screen.Good:
		return result.Foreground(tcell.PaletteColor(2))
	case style == screen.Busy:
		return result.Foreground(tcell.PaletteColor(3))
	case style == screen.Faint:
		return result.Dim(true)
	}
	return result
}

var keyNames = map[tcell.Key]string{
	tcell.KeyUp: keyUp, tcell.KeyDown: keyDown, tcell.KeyPgUp: keyPageUp, tcell.KeyPgDn: keyPageDown, tcell.KeyHome: keyHome,
	tcell.KeyEnd: keyEnd, tcell.KeyEnter: keyEnter, tcell.KeyEscape: keyEscape, tcell.KeyBackspace: keyBackspace,
	tcell.KeyBackspace2: keyBackspace, tcell.KeyCtrlC: keyInterrupt,
}

// keysOf returns the name of a key, or its character. It returns nil for unsupported keys. If Escape and another key
// arrive together,
// as over a slow connection, the terminal library reports the other key with Alt.
func keysOf(event *tcell.EventKey) []string {
	key := keyNames[event.Key()]
	if event.Key() == tcell.KeyRune {
		key = screen.Harmless(string(event.Rune()))
	}
	switch {
	case key == "":
		return nil
	case event.Modifiers()&tcell.ModAlt != 0 && key != keyEscape:
		return []string{keyEscape, key}
	}
	return []string{key}
}
