package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
)

// account is the directory with the credentials of the Pod's ServiceAccount.
const account = "/var/run/secrets/kubernetes.io/serviceaccount"

// api requests the names of the ServiceAccount's user from the API server as programs in clusters do. A host replaces the one in the environment. The
// certificate of the API server is verified by the authority of the cluster, so no other cluster can respond.
func api(ctx context.Context, host string, out io.Writer) error {
	token, err := os.ReadFile(filepath.Join(account, "token"))
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return errors.New("ca.crt has no certificate")
	}
	address := net.JoinHostPort(cmp.Or(host, os.Getenv("KUBERNETES_SERVICE_HOST")), cmp.Or(os.Getenv("KUBERNETES_SERVICE_PORT"), "443"))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/apis", nil) //nolint:gosec // a test names the address
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	response, err := client.Do(request) //nolint:gosec // a test names the address
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // its content does not count
	fmt.Fprintln(out, address, "responds", response.Status)
	return nil
}

// extend serves as a validating webhook that refuses everything, and as an API group, with the certificate and the key in a directory.
func extend(ctx context.Context, directory, address string) error {
	server := &http.Server{Addr: address, ReadHeaderTimeout: timeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "shop.example.org/v1", "resources": []any{}}
		if r.Method == http.MethodPost {
			review := struct {
				Request struct {
					UID string `json:"uid"`
				} `json:"request"`
			}{}
			if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&review); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			answer = map[string]any{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": map[string]any{
				"uid": review.Request.UID, "allowed": false, "status": map[string]any{"message": "the shop is closed"},
			}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	err := server.ListenAndServeTLS(filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
