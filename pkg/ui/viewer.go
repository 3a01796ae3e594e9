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

// Viewer is the user of a page, with the current permissions.
type Viewer struct {
	// Console accesses the clusters with the permissions of the viewer. It reads the details of ManagedResources.
	Console *console.Console
	// Sees are the namespaces whose ManagedResources are listed.
	Sees Namespaces
	// MayGet reports whether the viewer may get a ManagedResource in another namespace.
	MayGet func(ctx context.Context, name types.NamespacedName) (bool, error)
	// Name is the name of the user, if known. Scope describes what is shown, such as "all namespaces", and Notice what
	// is not
	// shown.
	Name, Scope, Notice string
	// CanLeave is set if the viewer logged in on the page, and can log out.
	CanLeave bool
	// Bounds are shared by all requests of a viewer.
	Bounds *Bounds
}

// explain returns the error message with advice.
func (v *Viewer) explain(err error) string { return v.Console.Explain(err).Error() }

// sees returns an error if the viewer may not see data in memory about a ManagedResource.
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

// Bounds limit the concurrent requests of one viewer, and cache a result.
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

// take acquires a slot of each bound, and returns a function that releases them. It returns an error if the context
// is canceled first.
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

// Namespaces is an immutable set of namespaces. The zero value is empty.
type Namespaces struct {
	all   bool
	named map[string]bool
	key   string
}

// AllNamespaces returns the set of all namespaces.
func AllNamespaces() Namespaces { return Namespaces{all: true, key: "all"} }

// TheseNamespaces returns the set of the named namespaces.
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

// Include reports whether a namespace is in the set.
func (n Namespaces) Include(name string) bool { return n.all || n.named[name] }

// All reports whether the set contains all namespaces.
func (n Namespaces) All() bool { return n.all }

// Names returns the names of the namespaces, sorted. It returns none for all namespaces.
func (n Namespaces) Names() []string { return slices.Sorted(maps.Keys(n.named)) }

// DeniedError is returned if a viewer may not see anything.
type DeniedError struct {
	// Code is the HTTP status of the response. With 401, the page asks the viewer to log in.
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
