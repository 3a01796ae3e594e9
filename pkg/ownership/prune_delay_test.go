package ownership

import (
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestDepartures(t *testing.T) {
	x, y := keyNamed("x"), keyNamed("y")
	departures := NewPruneDelays()
	first, second := time.Unix(1, 0), time.Unix(2, 0)
	departures.Update(shop, []object.Key{x}, first)
	got := departures.Update(shop, []object.Key{x, y}, second)
	if !got[x].Equal(first) || !got[y].Equal(second) {
		t.Errorf("got %v", got)
	}
	departures.Update(shop, []object.Key{y}, second)
	if got := departures.Update(shop, []object.Key{x}, second); !got[x].Equal(second) {
		t.Errorf("after x was wanted again and then unwanted: %v", got)
	}
	departures.Update(shop, nil, second)
	if len(departures.byOwner) > 0 {
		t.Errorf("unused entries remain: %v", departures.byOwner)
	}
}
