package ui

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// Viewer is a user who looks at a page, with what may be shown to them at the moment.
type Viewer struct {
	// Console reaches the clusters with the rights of the viewer: what is read of one ManagedResource is read by it.
	Console *console.Console
	// Sees are the namespaces whose ManagedResources are listed.
	Sees Namespaces
	// MayGet reports whether a ManagedResource of another namespace may be read by its name.
	MayGet func(ctx context.Context, name types.NamespacedName) (bool, error)
	// Name is that of the user, as far as it is known. Scope says for people what is seen, such as "all namespaces", and Notice what
	// is not.
	Name, Scope, Notice string
	// CanLeave says that the viewer has logged in on the page, and so can log out.
	CanLeave bool
	// Bounds are the same for all requests of a viewer.
	Bounds *Bounds
}

// explain says what is wrong, and what to do.
func (v *Viewer) explain(err error) string { return v.Console.Explain(err).Error() }

// sees reports whether what was noted of a ManagedResource may be shown.
func (v *Viewer) sees(ctx context.Context, name types.NamespacedName) error {
	if v.Sees.Include(name.Namespace) {
		return nil
	}
	if v.MayGet != nil {
		if may, err := v.MayGet(ctx, name); err != nil || may {
			return err
		}
	}
	return &DeniedError{Code: http.StatusForbidden, Reason: fmt.Sprintf("you may not see ManagedResources in namespace %s", name.Namespace)}
}

// Bounds are how much one viewer may ask for at the same time, and what was just read for them.
type Bounds struct {
	reads, streams chan struct{}
	activity       struct {
		sync.Mutex
		last *Activities
		sees string
		at   time.Time
	}
}

// NewBounds returns bounds for a viewer.
func NewBounds(reads, streams int) *Bounds {
	return &Bounds{reads: make(chan struct{}, reads), streams: make(chan struct{}, streams)}
}

// take takes a place of each bound, as soon as there is one, and returns what gives them back; an error if the context ends before.
func take(ctx context.Context, bounds ...chan struct{}) (free func(), err error) {
	taken := 0
	free = func() {
		for _, bound := range bounds[:taken] {
			<-bound
		}
	}
	for _, bound := range bounds {
		select {
		case bound <- struct{}{}:
			taken++
		case <-ctx.Done():
			free()
			return nil, ctx.Err()
		}
	}
	return free, nil
}

// Namespaces are a set that never changes. The zero value has none.
type Namespaces struct {
	all   bool
	named map[string]bool
	key   string
}

// AllNamespaces are all that there are.
func AllNamespaces() Namespaces { return Namespaces{all: true, key: "all"} }

// TheseNamespaces are some.
func TheseNamespaces(names []string) Namespaces {
	n := Namespaces{named: map[string]bool{}}
	for _, name := range names {
		n.named[name] = true
	}
	digest := fnv.New64a()
	for _, name := range n.Names() {
		fmt.Fprintf(digest, "%s/", name)
	}
	n.key = fmt.Sprintf("%x", digest.Sum64())
	return n
}

// Include reports whether a namespace is one of them.
func (n Namespaces) Include(name string) bool { return n.all || n.named[name] }

// All reports whether they are all that there are, Names which they are otherwise, sorted.
func (n Namespaces) All() bool { return n.all }

// Names returns the names of the namespaces, sorted; none for all.
func (n Namespaces) Names() []string { return slices.Sorted(maps.Keys(n.named)) }

// DeniedError says why nothing is shown to a viewer.
type DeniedError struct {
	// Code is the status of the answer; 401 has the page ask for a token.
	Code   int
	Reason string
}

// Error returns the reason.
func (e *DeniedError) Error() string { return e.Reason }

// codeOf returns the HTTP status of a failed request, and the message for the page.
func codeOf(err error) (code int, refusal Refusal) {
	var denied *DeniedError
	switch {
	case errors.As(err, &denied):
		return denied.Code, Refusal{Forbidden: denied.Code == http.StatusForbidden}
	case apierrors.IsUnauthorized(err):
		return http.StatusUnauthorized, Refusal{}
	case apierrors.IsBadRequest(err):
		return http.StatusBadRequest, Refusal{}
	case apierrors.IsNotFound(err) && !console.HasNoKind(err):
		return http.StatusNotFound, Refusal{Gone: true}
	case apierrors.IsForbidden(err), errors.Is(err, console.ErrNoTarget):
		return http.StatusForbidden, Refusal{Forbidden: true}
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, Refusal{}
	}
	return http.StatusBadGateway, Refusal{}
}
