package exposure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// OwnBalancer is the route through the load balancer of the API server itself. All others are named after the namespace of a
// gateway.
const OwnBalancer = "service"

const (
	// left is how long a route stays open after another one is wanted: DNS records point to it, and clients cache them.
	left = 10 * time.Minute
	// leastLeft is how long it stays open at least after the records have changed. It is longer than their time to live.
	leastLeft = 5 * time.Minute
)

// Routes are the ways to an API server. They are recorded, so that a route that is not wanted any more stays open until no
// client uses it.
type Routes struct {
	// Wanted is the route that DNS records should point to, or empty for none.
	Wanted string
	// Leaving are the previous ones, sorted by name.
	Leaving []Leaving
}

// Leaving is a route that is not wanted any more, and the time at which it ends.
type Leaving struct {
	Name string
	Ends time.Time
}

// ParseRoutes reads routes in the format of String. An empty text has no route.
func ParseRoutes(text string) (Routes, error) {
	wanted, rest, _ := strings.Cut(text, ",")
	routes := Routes{Wanted: wanted}
	for rest != "" {
		var one string
		one, rest, _ = strings.Cut(rest, ",")
		name, ends, _ := strings.Cut(one, " ")
		at, err := time.Parse(time.RFC3339, ends)
		if err != nil || name == "" {
			return Routes{}, fmt.Errorf("read the recorded routes %q: %q is not the name of a route and a time", text, one)
		}
		routes.Leaving = append(routes.Leaving, Leaving{Name: name, Ends: at})
	}
	return routes, nil
}

// String returns the routes as a text for ParseRoutes.
func (r Routes) String() string {
	all := []string{r.Wanted}
	for _, each := range r.Leaving {
		all = append(all, each.Name+" "+each.Ends.UTC().Format(time.RFC3339))
	}
	return strings.Join(all, ",")
}

// Next returns the routes after the recorded ones, if one is wanted now. settled reports whether all DNS records point to it.
// Until then, no route ends.
func (r Routes) Next(wanted string, settled bool, now time.Time) Routes {
	next := Routes{Wanted: wanted}
	previous := slices.Clone(r.Leaving)
	if r.Wanted != "" && r.Wanted != wanted {
		previous = append(previous, Leaving{Name: r.Wanted, Ends: now.Add(left)})
	}
	for _, each := range previous {
		if !settled && each.Ends.Before(now.Add(leastLeft)) {
			each.Ends = now.Add(left)
		}
		if each.Name != wanted && each.Ends.After(now) {
			next.Leaving = append(next.Leaving, each)
		}
	}
	slices.SortFunc(next.Leaving, func(a, b Leaving) int { return cmp.Compare(a.Name, b.Name) })
	return next
}

// Ends returns when the next route ends, or zero if none does.
func (r Routes) Ends() time.Time {
	var ends time.Time
	for _, each := range r.Leaving {
		if ends.IsZero() || each.Ends.Before(ends) {
			ends = each.Ends
		}
	}
	return ends
}

// Has reports whether a route is open.
func (r Routes) Has(name string) bool {
	return r.Wanted == name || slices.ContainsFunc(r.Leaving, func(each Leaving) bool { return each.Name == name })
}
