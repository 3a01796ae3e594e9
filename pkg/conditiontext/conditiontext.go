// Package conditiontext keeps the texts of conditions and Events within limits, and stable while their meaning is the same: a condition whose message
// differs at every look is written at every look.
package conditiontext

import (
	"regexp"
	"strings"
)

const (
	// MaxCondition is how long the message of a condition is at most, in bytes, which keeps it readable.
	MaxCondition = 4096
	// maxEvent is the limit for an Event; the API server accepts 1024.
	maxEvent = 900 + len(ellipsis)

	ellipsis = " …"
)

// fleeting is what errors say that differs each time for the same cause: the address that a connection comes from, and the
// numbers and times that Go's HTTP/2 and X.509 packages mention.
var fleeting = regexp.MustCompile(`\S+:\d+->| LastStreamID=\d+,|(current time) \S+`)

// Stable returns the text of an error without what differs each time.
func Stable(text string) string { return fleeting.ReplaceAllString(text, "$1") }

// ForCondition shortens a text to what the message of a condition may have.
func ForCondition(text string) string { return Shorten(text, MaxCondition) }

// ForEvent shortens a text to what the note of an Event may have.
func ForEvent(text string) string { return Shorten(text, maxEvent) }

// Shorten returns a text of at most the given number of bytes, without splitting characters.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
