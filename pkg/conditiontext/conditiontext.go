// Package conditiontext limits the length of texts in conditions and Events, and keeps them stable while their meaning
// is the same. A condition whose message differs at each reconcile is written at each reconcile.
package conditiontext

import (
	"regexp"
	"strings"
)

const (
	// MaxCondition is the maximum length of the message of a condition in bytes, to keep it readable.
	MaxCondition = 4096
	// maxEvent is the limit for an Event; the API server accepts 1024.
	maxEvent = 900 + len(ellipsis)

	ellipsis = " …"
)

// fleeting matches parts of errors that differ each time for the same cause: the source address of a connection, and
// numbers and times in errors of Go's HTTP/2 and X.509 packages.
var fleeting = regexp.MustCompile(`\S+:\d+->| LastStreamID=\d+,|(current time) \S+`)

// Stable returns the text of an error without the parts that differ each time.
func Stable(text string) string { return fleeting.ReplaceAllString(text, "$1") }

// ForCondition shortens a text to the maximum length of the message of a condition.
func ForCondition(text string) string { return Shorten(text, MaxCondition) }

// ForEvent shortens a text to the maximum length of the note of an Event.
func ForEvent(text string) string { return Shorten(text, maxEvent) }

// Shorten returns a text of at most limit bytes, without splitting characters. A shortened text ends with an ellipsis.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
