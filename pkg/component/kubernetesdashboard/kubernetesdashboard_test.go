package kubernetesdashboard

import (
	"testing"

	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Image: "kubernetes-dashboard:v1", ImageScraper: "metrics-scraper:v1", AuthenticationMode: "token", ServerHost: "api.one.dev.internal.example.org",
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "shoot", objects)
}
