package managedresource

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/trellis-k8s/trellis/pkg/object"
)

const (
	// contestTolerance is how often an object is put back at once, within contestMemory, before its changes count as a contest.
	contestTolerance = 5
	// contestMemory is also how long an object has to stay as it is until a contest is forgotten.
	contestMemory = 10 * time.Minute
	// contestDelay is the first delay between two corrections of a contested object. It doubles with every correction, up to
	// contestMaxDelay, which is shorter than contestMemory, so that a contest that goes on is not forgotten.
	contestDelay    = time.Second
	contestMaxDelay = 5 * time.Minute
)

// contest is what is remembered of an object that was put back.
type contest struct {
	corrections int
	last        time.Time
	// recent are the times of the corrections as long as they are no contest.
	recent []time.Time
	// managers are the field managers that changed the object, sorted.
	managers []string
}

// open reports whether somebody keeps changing the object.
func (c contest) open() bool { return c.corrections > contestTolerance }

// resumes is when the object may be put back again.
func (c contest) resumes() time.Time {
	if !c.open() {
		return c.last
	}
	delay := contestMaxDelay
	if doublings := c.corrections - contestTolerance - 1; doublings < 16 {
		delay = min(delay, contestDelay<<doublings)
	}
	return c.last.Add(delay)
}

// ends is when the contest is forgotten if nobody changes the object until then.
func (c contest) ends() time.Time { return c.last.Add(contestMemory + time.Nanosecond) }

// describe says who contests an object, for people. It does not change while the contest goes on between the same parties.
func (c contest) describe(ref object.Ref) string {
	by := "somebody"
	if len(c.managers) > 0 {
		by = fmt.Sprintf("the field manager %q", c.managers[0])
		for _, manager := range c.managers[1:] {
			by += fmt.Sprintf(" and %q", manager)
		}
	}
	return fmt.Sprintf("%s keeps being changed by %s: let one of the two leave the fields alone", ref, by)
}

// contests remembers which objects had to be put back, so that a writer that does not give in is met ever more slowly. It
// is safe for concurrent use.
type contests struct {
	mu       sync.Mutex
	byObject map[object.Key]contest
	// swept is when those of objects that nobody asks for any more were last forgotten.
	swept time.Time
}

func newContests() *contests {
	return &contests{byObject: map[object.Key]contest{}}
}

// of returns what is remembered of an object.
func (c *contests) of(key object.Key, now time.Time) contest {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(now)
	known := c.byObject[key]
	if now.Sub(known.last) > contestMemory {
		return contest{}
	}
	return known
}

// sweep forgets the objects that are left in peace, each at the latest contestMemory after its time is over.
func (c *contests) sweep(now time.Time) {
	if now.Sub(c.swept) <= contestMemory {
		return
	}
	c.swept = now
	for key, known := range c.byObject {
		if now.Sub(known.last) > contestMemory {
			delete(c.byObject, key)
		}
	}
}

// corrected notes that an object was put back after a manager had changed it. It reports whether that opened a contest.
func (c *contests) corrected(key object.Key, manager string, now time.Time) (opened bool) {
	known := c.of(key, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known.open() {
		known.corrections++
	} else {
		known.recent = append(slices.DeleteFunc(slices.Clone(known.recent), func(at time.Time) bool { return now.Sub(at) > contestMemory }), now)
		known.corrections = len(known.recent)
	}
	if known.open() {
		known.recent = nil
	}
	known.last = now
	if manager != "" && !slices.Contains(known.managers, manager) {
		known.managers = slices.Sorted(slices.Values(append(slices.Clone(known.managers), manager)))
	}
	c.byObject[key] = known
	return known.corrections == contestTolerance+1
}

// count returns how many objects are contested.
func (c *contests) count(now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := 0
	for _, known := range c.byObject {
		if known.open() && now.Sub(known.last) <= contestMemory {
			open++
		}
	}
	return open
}
