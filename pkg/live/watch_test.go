package live

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/target"
)

// TestMain disables the error handlers of client-go. They compare the time of an error with that of the previous one, and the
// time inside a synctest bubble differs.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

var serverResource = schema.GroupResource{Resource: "configmaps"}

// server is a fake API server for lists and watches of one kind. It can fail requests, and does not support reads of one
// object.
type server struct {
	target.Reading

	mu sync.Mutex
	// failure is the response to each request, or nil for success. Requests that hang end with their context.
	failure error
	hangs   bool
	// version is the latest resourceVersion, watches are the open watches, and asked is the number of requests.
	version, asked int
	watches        []*watch.FakeWatcher
	// followed is called when a watch is opened.
	followed func()
}

func (s *server) ask(ctx context.Context) error {
	s.mu.Lock()
	s.asked++
	failure, hangs := s.failure, s.hangs
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return failure
}

func (s *server) List(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	if err := s.ask(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	version := strconv.Itoa(s.version)
	return &metav1.PartialObjectMetadataList{
		ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: []metav1.PartialObjectMetadata{*metaOf("ns", "a", version, "x")},
	}, nil
}

func (s *server) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := s.ask(ctx); err != nil {
		return nil, err
	}
	if options.SendInitialEvents != nil { // like an API server that cannot stream lists
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	events := watch.NewFake()
	s.watches = append(s.watches, events)
	if s.followed != nil {
		s.followed()
	}
	return events, nil
}

// fail makes all further requests fail, and ends the open watches.
func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	for _, open := range s.watches {
		open.Stop()
	}
	s.watches = nil
}

// recover makes requests succeed from now on.
func (s *server) recover(followed func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure, s.followed = nil, followed
}

func (s *server) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// startWatch watches the objects of a server until the context ends.
func startWatch(ctx context.Context, s *server) *kindWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &kindWatch{gk: schema.GroupKind{Kind: "ConfigMap"}, clock: clock.RealClock{}, decided: make(chan struct{}), cancel: cancel}
	w.store = &store{
		observer: observer{gk: w.gk}, clock: clock.RealClock{}, objects: held{}, shown: map[string]string{},
		changed: func(types.NamespacedName) {}, healthChanged: func(string) {},
	}
	w.run(ctx, target.Collection{Namespaced: true, In: func(string) target.Reading { return s }}, "someone")
	return w
}

// TestWatch_Outage checks that the watch continues as soon as the API server responds again, and that the number of requests
// during the outage is limited.
func TestWatch_Outage(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://api", Err: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}
	for name, test := range map[string]struct {
		failure error
		// late is how long after the outage a watch may start, perMinute is the maximum number of requests per minute.
		late      time.Duration
		perMinute int
	}{
		"connections are refused":   {refused, 500 * time.Millisecond, 400},
		"429":                       {apierrors.NewTooManyRequestsError("too many requests"), 500 * time.Millisecond, 400},
		"429 with Retry-After":      {apierrors.NewTooManyRequests("too many requests", 1), 500 * time.Millisecond, 400},
		"503":                       {apierrors.NewServiceUnavailable("starting"), 500 * time.Millisecond, 400},
		"500":                       {apierrors.NewInternalError(os.ErrDeadlineExceeded), 500 * time.Millisecond, 400},
		"the rights are missing":    {apierrors.NewForbidden(serverResource, "", nil), 15 * time.Second, 30},
		"the credentials are wrong": {apierrors.NewUnauthorized("token expired"), 15 * time.Second, 30},
		"the page is not an answer": {apierrors.NewGenericServerResponse(http.StatusTeapot, "get", serverResource, "", "", 0, true), 15 * time.Second, 30},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				s := &server{}
				w := startWatch(ctx, s)
				if !w.usable(ctx) {
					t.Fatal("the watch does not start")
				}
				s.fail(test.failure)
				time.Sleep(2 * time.Minute)
				before := s.requests()
				time.Sleep(time.Minute)
				if asked := s.requests() - before; asked > test.perMinute {
					t.Errorf("%d requests per minute, want at most %d", asked, test.perMinute)
				}
				followed := make(chan struct{}, 1)
				begun := time.Now()
				s.recover(func() {
					select {
					case followed <- struct{}{}:
					default:
					}
				})
				<-followed
				if late := time.Since(begun); late > test.late {
					t.Errorf("the watch continues after %s, want at most %s", late, test.late)
				}
				synctest.Wait()
				if w.state() != stateWatching {
					t.Errorf("the watch is %s", w.state())
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// TestWatch_HangsAtItsBegin checks that kinds whose watches neither start nor fail are waited for concurrently, and only once.
func TestWatch_HangsAtItsBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		watches := []*kindWatch{startWatch(ctx, &server{hangs: true}), startWatch(ctx, &server{hangs: true})}
		for range 2 {
			for _, w := range watches {
				if w.usable(ctx) {
					t.Error("a watch that has shown nothing is usable")
				}
			}
		}
		if waited := time.Since(begun); waited > firstSync {
			t.Errorf("waited %s, want at most %s", waited, firstSync)
		}
		time.Sleep(3 * time.Minute)
		for _, w := range watches {
			if w.state() != stateFailing {
				t.Errorf("after three minutes without an answer the watch is %s", w.state())
			}
		}
		cancel()
		synctest.Wait()
	})
}

// TestWatch_EndedBeforeItShowsAnything checks that no reader keeps waiting for a watch that is ended because its objects must
// be examined in another way.
func TestWatch_EndedBeforeItShowsAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &server{hangs: true}
		w := startWatch(ctx, s)
		read := make(chan bool)
		go func() { read <- w.usable(t.Context()) }()
		synctest.Wait()
		cancel()
		if <-read {
			t.Error("a watch that has shown nothing is used")
		}
	})
}
