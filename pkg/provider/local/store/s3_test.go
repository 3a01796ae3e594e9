package store

import (
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/extension"
)

// credentialsFor returns credentials for a test server.
func credentialsFor(server *httptest.Server) map[string][]byte {
	data := map[string][]byte{
		KeyAccessKeyID: []byte("me"), KeySecretAccessKey: []byte("top-secret"), KeyEndpoint: []byte(server.URL), KeyForcePathStyle: []byte("true"),
	}
	if certificate := server.Certificate(); certificate != nil {
		data[KeyTrustedCACert] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
	}
	return data
}

// TestS3 uses a fake S3 server with TLS.
func TestS3(t *testing.T) {
	server := httptest.NewTLSServer(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(server.Close)
	ctx := t.Context()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "bucket"}, Data: credentialsFor(server)}
	stores := Stores{Uncached: fake.NewClientBuilder().WithObjects(secret).Build()}
	buckets, data, err := stores.Of(ctx, corev1.SecretReference{Namespace: "garden", Name: "bucket"}, "north")
	if err != nil || string(data[KeyAccessKeyID]) != "me" || string(data[KeyRegion]) != "us-east-1" {
		t.Fatal(data, err)
	}
	store, is := buckets.(*s3Store)
	if !is {
		t.Fatalf("the store is %T", buckets)
	}
	for range 2 {
		if err := store.Create(ctx, "backups"); err != nil {
			t.Fatal(err)
		}
	}
	bucket, err := s3blob.OpenBucket(ctx, store.client, "backups", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bucket.Close() })
	for _, key := range []string{"blue--1/etcd-main/full", "blue--1/etcd-main/delta", "blue--12/etcd-main/full"} {
		if err := bucket.WriteAll(ctx, key, []byte("snapshot"), nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := store.DeleteEntry(ctx, "backups", "blue--1"); err != nil {
			t.Fatal(err)
		}
	}
	if left := keysIn(t, bucket); strings.Join(left, " ") != "blue--12/etcd-main/full" {
		t.Errorf("after the deletion of one entry, %q remain", left)
	}
	for range 2 {
		if err := store.Delete(ctx, "backups"); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := store.client.ListBuckets(ctx, &s3.ListBucketsInput{}); err != nil || len(all.Buckets) != 0 {
		t.Errorf("%v, the remaining buckets: %v", err, all)
	}
	if err := store.DeleteEntry(ctx, "backups", "blue--1"); err != nil {
		t.Errorf("for an entry of a deleted bucket: %v", err)
	}
}

func keysIn(t *testing.T, bucket *blob.Bucket) []string {
	t.Helper()
	var keys []string
	for objects := bucket.List(nil); ; {
		object, err := objects.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return keys
		}
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, object.Key)
	}
}

// TestS3Fails checks that errors name the problem, are the same text each time, and contain no credentials.
func TestS3Fails(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>InvalidAccessKeyId</Code><Message>The access key does not exist.</Message><RequestId>"+rand(t)+"</RequestId></Error>")
	}))
	t.Cleanup(refusing.Close)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	for name, test := range map[string]struct {
		server *httptest.Server
		want   string
	}{
		"refused": {refusing, "Forbidden"}, "down": {down, "the store does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := newS3(credentialsFor(test.server), "")
			if err != nil {
				t.Fatal(err)
			}
			first, second := store.Create(t.Context(), "backups"), store.Create(t.Context(), "backups")
			if first == nil || second == nil || first.Error() != second.Error() || !strings.Contains(first.Error(), test.want) || !strings.Contains(first.Error(), "backups") ||
				strings.Contains(first.Error(), "top-secret") {
				t.Errorf("%v, %v", first, second)
			}
			if err := store.Delete(t.Context(), "backups"); err == nil {
				t.Error("a bucket counts as deleted although the store fails")
			}
		})
	}
}

// rand returns a different text each time, like the request IDs of stores.
func rand(t *testing.T) string {
	t.Helper()
	return t.TempDir()
}

// TestS3Credentials checks that invalid credentials are a configuration problem, and that the error names the keys.
func TestS3Credentials(t *testing.T) {
	for want, change := range map[string]map[string]string{
		KeySecretAccessKey: {KeySecretAccessKey: ""}, KeyEndpoint: {KeyEndpoint: "s3.example.org"}, KeyForcePathStyle: {KeyForcePathStyle: "perhaps"},
		KeyTrustedCACert: {KeyTrustedCACert: "top-secret"},
	} {
		data := map[string][]byte{KeyAccessKeyID: []byte("me"), KeySecretAccessKey: []byte("top-secret")}
		for key, value := range change {
			data[key] = []byte(value)
		}
		_, err := newS3(data, "")
		if err == nil || !strings.Contains(err.Error(), "the key "+want) || strings.Contains(err.Error(), "top-secret") ||
			len(extension.Codes(err)) != 1 || extension.Codes(err)[0] != corev1beta1.ErrorConfigurationProblem {
			t.Errorf("%v: %v", change, err)
		}
	}
	store, err := newS3(map[string][]byte{KeyAccessKeyID: []byte("me"), KeySecretAccessKey: []byte("b"), KeyRegion: []byte("eu-1")}, "eu-2")
	if err != nil || store.region != "eu-1" || store.own {
		t.Errorf("%+v, %v", store, err)
	}
	for _, entry := range []string{"", "a/b"} {
		if err := store.DeleteEntry(t.Context(), "backups", entry); err == nil || !strings.Contains(err.Error(), "the name of an entry") {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

// TestS3Region checks which region requests are signed for, and buckets are created in.
func TestS3Region(t *testing.T) {
	for name, test := range map[string]struct{ inSecret, declared, endpoint, want string }{
		"declared":                    {declared: "eu-2", want: "eu-2"},
		"in the Secret":               {inSecret: "eu-1", declared: "eu-2", want: "eu-1"},
		"of a store without regions":  {declared: "local", endpoint: "https://s3.example.org", want: "us-east-1"},
		"of a store with own regions": {inSecret: "north", declared: "local", endpoint: "https://s3.example.org", want: "north"},
		"none":                        {want: "us-east-1"},
	} {
		data := map[string][]byte{KeyAccessKeyID: []byte("me"), KeySecretAccessKey: []byte("b"), KeyRegion: []byte(test.inSecret), KeyEndpoint: []byte(test.endpoint)}
		store, err := newS3(data, test.declared)
		if err != nil || store.region != test.want {
			t.Errorf("%s: %+v, %v, want %s", name, store, err, test.want)
		}
	}
}
