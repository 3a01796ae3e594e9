package flow

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
)

// ReasonOf returns the text of an error for readers of the owner's status, such as end users of a Shoot. For requests
// without a response, it names the cause but omits the address of the API server and the ports of the connection, which
// change with each attempt.
func ReasonOf(err error) string {
	text := err.Error()
	for _, unanswered := range unansweredIn(err) {
		text = strings.ReplaceAll(text, unanswered.Error(), "the API server does not answer: "+causeOf(unanswered))
	}
	return text
}

// unansweredIn returns the errors of requests without a response.
func unansweredIn(err error) []*url.Error {
	switch wrapped := err.(type) { //nolint:errorlint // this goes through the whole tree, and errors.As ends at the first error found
	case *url.Error:
		return []*url.Error{wrapped}
	case interface{ Unwrap() error }:
		return unansweredIn(wrapped.Unwrap())
	case interface{ Unwrap() []error }:
		var found []*url.Error
		for _, one := range wrapped.Unwrap() {
			found = append(found, unansweredIn(one)...)
		}
		return found
	}
	return nil
}

// causeOf returns why a request received no response, without addresses.
func causeOf(err *url.Error) string {
	var timeout interface{ Timeout() bool }
	var call *os.SyscallError
	var connection *net.OpError
	var lookup *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.As(err, &call):
		return call.Err.Error()
	case errors.As(err, &lookup):
		return "its name cannot be resolved"
	case errors.As(err, &connection):
		return connection.Err.Error()
	}
	return err.Err.Error()
}
