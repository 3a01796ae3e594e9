// Package message keeps texts for people the same as long as what they tell is: a condition whose message differs at every
// look is written at every look.
package message

import "regexp"

// fleeting is what errors say that differs each time for the same cause: the address that a connection comes from, and the
// numbers and times that Go's HTTP/2 and X.509 packages mention.
var fleeting = regexp.MustCompile(`\S+:\d+->| LastStreamID=\d+,|(current time) \S+`)

// Stable returns the text of an error without what differs each time.
func Stable(text string) string { return fleeting.ReplaceAllString(text, "$1") }
