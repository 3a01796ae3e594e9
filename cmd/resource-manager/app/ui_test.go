package app

import (
	"testing"

	"k8s.io/client-go/rest"
)

// TestAnonymous checks that the configuration for requests of viewers contains no credentials of the resource-manager.
func TestAnonymous(t *testing.T) {
	config := &rest.Config{
		Host: "https://here", BearerToken: "a", BearerTokenFile: "b", Username: "c", Password: "d", Impersonate: rest.ImpersonationConfig{UserName: "e"},
		TLSClientConfig: rest.TLSClientConfig{CertData: []byte("f"), KeyData: []byte("g"), CertFile: "h", KeyFile: "i", CAData: []byte("authority")},
	}
	got := anonymous(config)
	if got.Host != "https://here" || string(got.CAData) != "authority" || got.BearerToken+got.BearerTokenFile+got.Username+got.Password+got.Impersonate.UserName+
		got.CertFile+got.KeyFile+string(got.CertData)+string(got.KeyData) != "" {
		t.Errorf("%+v", got)
	}
	if got.WrapTransport == nil {
		t.Error("redirects are followed")
	}
	if !isSameCluster(config, got) || isSameCluster(config, &rest.Config{Host: "https://there"}) || isSameCluster(config, &rest.Config{Host: config.Host}) {
		t.Error("isSameCluster does not distinguish clusters")
	}
}
