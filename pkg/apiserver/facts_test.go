package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardenadmission "github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/openidconnectpreset"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestFactsThatAreNotKnownAre503 checks the answer to a request that needs objects before the watches have delivered them: clients repeat it.
func TestFactsThatAreNotKnownAre503(t *testing.T) {
	t.Parallel()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	f, garden := &facts{live: fake.NewClientBuilder().WithScheme(scheme).Build()}, &gardenadmission.Garden{}
	f.addReaders(garden) // the informers do not start
	plugins := &apiadmission.Plugins{}
	gardenadmission.Register(plugins, openidconnectpreset.Plugin)
	plugin, err := plugins.InitPlugin(openidconnectpreset.Plugin.Name, nil, gardenadmission.Initializer{Garden: garden})
	if err != nil {
		t.Fatal(err)
	}
	shoot := &gardencorev1beta1.Shoot{}
	attributes := func(operation apiadmission.Operation) apiadmission.Attributes {
		version := gardencorev1beta1.SchemeGroupVersion
		return apiadmission.NewAttributesRecord(shoot, nil, version.WithKind("Shoot"), "garden-dev", "one", schema.GroupVersionResource{
			Group: version.Group, Version: version.Version, Resource: "shoots",
		}, "", operation, nil, false, &user.DefaultInfo{Name: "alice"})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	mutating, is := plugin.(apiadmission.MutationInterface)
	if !is {
		t.Fatal("the plugin changes nothing")
	}
	err = mutating.Admit(ctx, attributes(apiadmission.Create), nil)
	if !apierrors.IsServiceUnavailable(err) {
		t.Fatalf("error %v, want 503", err)
	}
	if seconds, suggested := apierrors.SuggestsClientDelay(err); !suggested || seconds == 0 {
		t.Errorf("the error %v does not tell clients when to try again", err)
	}
}

// TestWaitsForFactsEnd checks how long a request waits: for the memory until a time after its arrival, and for a list of its own.
func TestWaitsForFactsEnd(t *testing.T) {
	t.Parallel()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	silent := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			<-ctx.Done()
			return ctx.Err()
		},
	})
	synctest.Test(t, func(t *testing.T) {
		garden := &gardenadmission.Garden{}
		(&facts{live: silent}).addReaders(garden)
		arrived := func() context.Context {
			return request.WithReceivedTimestamp(t.Context(), time.Now().Add(-8*time.Second))
		}
		for name, read := range map[string]struct {
			wait time.Duration
			from func() error
		}{
			"memory": {factsTimeout - 8*time.Second, func() error {
				_, err := garden.Seeds.Get(arrived(), "", "one")
				return err
			}},
			"list": {factsTimeout, func() error {
				_, err := garden.Shoots.LiveBy(arrived(), gardenadmission.ShootsBySeed, "one")
				return err
			}},
		} {
			began := time.Now()
			if err := read.from(); !apierrors.IsServiceUnavailable(err) || time.Since(began) != read.wait {
				t.Errorf("%s: the error %v after %s, want 503 after %s", name, err, time.Since(began), read.wait)
			}
		}
	})
}

// answer answers a request without a connection.
type answer func(*http.Request) (*http.Response, error)

func (a answer) RoundTrip(request *http.Request) (*http.Response, error) { return a(request) }

// TestReadsForRequestsAreNotLimited reads many Secrets one after the other. The clock of the test passes only while the client waits.
func TestReadsForRequestsAreNotLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		missing := answer(func(*http.Request) (*http.Response, error) {
			recorder := httptest.NewRecorder()
			recorder.WriteHeader(http.StatusNotFound)
			return recorder.Result(), nil
		})
		config := &server.RecommendedConfig{ClientConfig: &rest.Config{Host: "https://garden.example.org", Transport: missing}}
		read, err := secretReader(kubeConnection(config))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 100 {
			if _, err := read(t.Context(), "garden", "absent"); !apierrors.IsNotFound(err) {
				t.Fatalf("got %v", err)
			}
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the client waited %s", waited)
		}
	})
}
