package providerlabels

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSync(t *testing.T) {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		"provider.shoot.gardener.cloud/removed": "true", "provider.shoot.gardener.cloud/local": "false", "mine": "x",
	}}}
	sync(object, map[string]bool{"local": true, "aws": true})
	want := map[string]string{"provider.shoot.gardener.cloud/local": "true", "provider.shoot.gardener.cloud/aws": "true", "mine": "x"}
	if !maps.Equal(object.Labels, want) {
		t.Errorf("got %v, want %v", object.Labels, want)
	}
}
