package managedresource

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/trellis-k8s/trellis/pkg/object"
)

const (
	// fightTolerance is how often an object is put back at once, within fightMemory, before its changes count as a contest.
	fightTolerance = 5
	// fightMemory is also how long an object has to stay as it is until a contest is forgotten.
	fightMemory = 10 * time.Minute
	// firstFightDelay is the first delay between two corrections of a contested object. It doubles with every correction, up to
	// greatestFightDelay, which is shorter than fightMemory, so that a contest that goes on is not forgotten.
	firstFightDelay    = time.Second
	greatestFightDelay = 5 * time.Minute
)

// fight is what is remembered of an object that was put back.
type fight struct {
	corrections int
	last        time.Time
	// recent are the times of the corrections as long as they are no contest.
	recent []time.Time
	// managers are the field managers that changed the object, sorted.
	managers []string
}

// active reports whether somebody keeps changing the object.
func (c fight) active() bool { return c.corrections > fightTolerance }

// resumes is when the object may be put back again.
func (c fight) resumes() time.Time {
	if !c.active() {
		return c.last
	}
	delay := greatestFightDelay
	if doublings := c.corrections - fightTolerance - 1; doublings < 16 {
		delay = min(delay, firstFightDelay<<doublings)
	}
	return c.last.Add(delay)
}

// ends is when the contest is forgotten if nobody changes the object until then.
func (c fight) ends() time.Time { return c.last.Add(fightMemory + time.Nanosecond) }

// describe says who contests an object, for people. It does not change while the contest goes on between the same parties.
func (c fight) describe(ref object.Ref) string {
	by := "somebody"
	if len(c.managers) > 0 {
		by = fmt.Sprintf("the field manager %q", c.managers[0])
		for _, manager := range c.managers[1:] {
			by += fmt.Sprintf(" and %q", manager)
		}
	}
	return fmt.Sprintf("%s keeps being changed by %s: let one of the two leave the fields alone", ref, by)
}

// fights remembers which objects had to be put back, so that a writer that does not give in is met ever more slowly. It
// is safe for concurrent use.
type fights struct {
	mu       sync.Mutex
	byObject map[object.Key]fight
	// swept is when those of objects that nobody asks for any more were last forgotten.
	swept time.Time
}

func newFights() *fights {
	return &fights{byObject: map[object.Key]fight{}}
}

// of returns what is remembered of an object.
func (c *fights) of(key object.Key, now time.Time) fight {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(now)
	known := c.byObject[key]
	if now.Sub(known.last) > fightMemory {
		return fight{}
	}
	return known
}

// sweep forgets the objects that are left in peace, each at the latest fightMemory after its time is over.
func (c *fights) sweep(now time.Time) {
	if now.Sub(c.swept) <= fightMemory {
		return
	}
	c.swept = now
	for key, known := range c.byObject {
		if now.Sub(known.last) > fightMemory {
			delete(c.byObject, key)
		}
	}
}

// corrected notes that an object was put back after a manager had changed it. It reports whether that opened a contest.
func (c *fights) corrected(key object.Key, manager string, now time.Time) (opened bool) {
	known := c.of(key, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known.active() {
		known.corrections++
	} else {
		known.recent = append(slices.DeleteFunc(slices.Clone(known.recent), func(at time.Time) bool { return now.Sub(at) > fightMemory }), now)
		known.corrections = len(known.recent)
	}
	if known.active() {
		known.recent = nil
	}
	known.last = now
	if manager != "" && !slices.Contains(known.managers, manager) {
		known.managers = slices.Sorted(slices.Values(append(slices.Clone(known.managers), manager)))
	}
	c.byObject[key] = known
	return known.corrections == fightTolerance+1
}

// count returns how many objects are contested.
func (c *fights) count(now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := 0
	for _, known := range c.byObject {
		if known.active() && now.Sub(known.last) <= fightMemory {
			open++
		}
	}
	return open
}
