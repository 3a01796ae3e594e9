package extensionvalidation

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// seeds are specs that together have every field.
var seeds = []string{
	`null`, `[]`, `"a"`, `{`, `{}`, `{"type":1}`, `{"type":"a","region":"b","secretRef":{"name":"c"},"bucketName":"d","binaryPath":"e","workerPool":{"name":"f"}}`,
	`{"type":"a","userData":"YQ==","ingress":[{}]}`, `{"userData":"","ingress":[1]}`,
	`{"name":"*._a.example.com","recordType":"TXT","values":["1.2.3.4"],"ttl":9223372036854775807,"region":"","zone":""}`,
	`{"recordType":"A","values":["1.2.3.4","::1%eth0","x"],"ttl":-1}`, `{"recordType":"CNAME","values":["a.b","c.d"]}`,
	`{"podCIDR":"10.0.0.0/8","serviceCIDR":"::ffff:10.0.0.0/104","ipFamilies":["IPv4","IPv6","IPv4"]}`, `{"podCIDR":"2001:db8::/0","serviceCIDR":"/","ipFamilies":["IPv6"]}`,
	`{"purpose":"provision","units":[{"name":"a","dropIns":[{}],"filePaths":["/a"]}],"files":[{"path":"/a","hostName":"b","content":{"inline":{"encoding":"b64"}}}]}`,
	`{"purpose":"reconcile","criConfig":{"cgroupDriver":"","containerd":{"registries":[{"upstream":"[::1]:1","server":"http://","hosts":[{"url":"%","capabilities":["pull"]}]}],"plugins":[{"op":"remove","path":["a"],"values":{}}]}}}`,
	`{"port":443,"endpoints":[{"nodeName":"a","addresses":[{"type":"InternalDNS","address":"."}]}],"credentialsRef":{}}`,
	`{"pools":[{"architecture":"arm64","nodeTemplate":{"capacity":{"cpu":"1e-2147483648","memory":-1,"":null}}}]}`,
	`{"replicas":-1,"storageCapacity":"1Gi","etcd":{"quota":{},"defragmentationSchedule":"@"},"backup":{"fullSnapshotSchedule":"TZ=a * * * * *","deltaSnapshotPeriod":"1h"}}`,
}

// FuzzKinds checks that there is an answer for any spec, and that a refusal has a message. An accepted object can be created
// again, an unchanged object can be updated, and an object that is being deleted cannot be changed.
func FuzzKinds(f *testing.F) {
	for i, seed := range seeds {
		f.Add(seed, seeds[(i+1)%len(seeds)])
	}
	f.Fuzz(func(t *testing.T, spec, oldSpec string) {
		for _, kind := range Kinds() {
			object, old := objectOf(kind, "", spec), objectOf(kind, "", oldSpec)
			valid := json.Unmarshal([]byte(object), &anyObject{}) == nil
			ask := func(operation admissionv1.Operation, object, old string) []string {
				response := kind.NewHandler().Handle(t.Context(), request(kind, operation, object, old))
				if response.Allowed {
					return nil
				}
				if response.Result.Message == "" || len(response.Result.Message) > 20*(len(spec)+len(oldSpec))+10_000 {
					t.Errorf("%s: a message of %d bytes about %s", kind.Kind, len(response.Result.Message), object)
				}
				if response.Result.Code == http.StatusBadRequest {
					return []string{"malformed"}
				}
				return fieldsOf(t, response)
			}
			created := ask(admissionv1.Create, object, "")
			if updated := ask(admissionv1.Update, object, object); valid && len(updated) > 0 {
				t.Errorf("%s: the update of %s without a change is refused: %v", kind.Kind, object, updated)
			}
			// An object that is invalid for a creation is also invalid for an update, unless nothing changes.
			updated := ask(admissionv1.Update, object, old)
			if len(updated) > 0 && valid && json.Unmarshal([]byte(old), &anyObject{}) == nil && len(created) < maxErrors &&
				slices.ContainsFunc(created, func(field string) bool { return !slices.Contains(updated, field) }) && len(updated) < maxErrors {
				t.Errorf("%s: %s is refused with %v when created, with %v when updated", kind.Kind, object, created, updated)
			}
			inDeletion := ask(admissionv1.Update, objectOf(kind, deleting, spec), objectOf(kind, deleting, oldSpec))
			if len(inDeletion) > 1 || len(inDeletion) == 1 && inDeletion[0] != "spec" && !strings.HasPrefix(inDeletion[0], "malformed") {
				t.Errorf("%s: the update of %s in deletion is refused with %v", kind.Kind, object, inDeletion)
			}
		}
	})
}
