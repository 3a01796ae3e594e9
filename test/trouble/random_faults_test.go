package trouble

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"
)

// weather makes requests fail at random.
type weather struct {
	// share is the share of all requests that fail.
	share float64
	// passed counts the requests, and faults the failed ones.
	passed, faults atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
	fair   bool
}

func newWeather(seed uint64, share float64) *weather {
	return &weather{share: share, random: rand.New(rand.NewPCG(seed, 2))}
}

// over applies the weather to proxies.
func (w *weather) over(proxies ...*proxy) {
	for _, p := range proxies {
		p.breakWith(w.tamper)
		p.disturb(func(*http.Request) stream { return w.stream() })
	}
}

// clear ends the faults.
func (w *weather) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fair = true
}

// draw returns the number of a fault and a further random number. Without a fault, kind is -1.
func (w *weather) draw(kinds int) (kind, chance int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fair || w.random.Float64() >= w.share {
		return -1, 0
	}
	return w.random.IntN(kinds), w.random.IntN(1000)
}

func (w *weather) tamper(next http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, r *http.Request) {
		w.passed.Add(1)
		if isWatch(r) {
			next.ServeHTTP(writer, r) // see stream
			return
		}
		kind, chance := w.draw(6)
		if kind >= 0 {
			w.faults.Add(1)
		}
		switch kind {
		case 0: // delayed
			select {
			case <-time.After(time.Duration(chance) * 3 * time.Millisecond):
			case <-r.Context().Done():
			}
			next.ServeHTTP(writer, r)
		case 1: // the connection breaks before the request is executed
			panic(http.ErrAbortHandler)
		case 2: // the connection breaks afterwards
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case 3:
			writer.Header().Set("Retry-After", "1")
			answer(writer, http.StatusTooManyRequests, "TooManyRequests")
		case 4:
			answer(writer, http.StatusInternalServerError, "InternalError")
		case 5:
			answer(writer, http.StatusServiceUnavailable, "ServiceUnavailable")
		default:
			next.ServeHTTP(writer, r)
		}
	})
}

func answer(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"a fault","reason":%q,"code":%d}`, reason, code)
}

// stream decides how a watch is disturbed: it is delayed, shows everything twice, or breaks after some events.
func (w *weather) stream() stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fair {
		return stream{}
	}
	w.faults.Add(1)
	return stream{
		delay: time.Duration(w.random.IntN(1000)) * time.Millisecond, times: 1 + w.random.IntN(2), most: 50 + w.random.IntN(1000),
	}
}
