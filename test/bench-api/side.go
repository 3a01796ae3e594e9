package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	namespace = "garden-bench"
	// placeholder replaces the name of an object in its encoded form.
	placeholder = "object-name"
	pageSize    = "500"
)

// side is one of the two compared sides: the location of its objects and the content of one object.
type side struct {
	name    string
	config  *rest.Config
	client  *http.Client
	path    string
	object  []byte
	created int
}

// newSide returns a side with objects like the given one, in another API version.
func newSide(name string, config *rest.Config, apiVersion string, object map[string]any) (*side, error) {
	object["apiVersion"] = apiVersion
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode an object: %w", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the control plane: %w", err)
	}
	return &side{
		name: name, config: config, client: client, object: encoded,
		path: strings.TrimSuffix(config.Host, "/") + "/apis/" + apiVersion + "/namespaces/" + namespace + "/shoots",
	}, nil
}

// connection returns a client with its own connection.
func (s *side) connection() (*http.Client, error) {
	config := rest.CopyConfig(s.config)
	config.Dial = (&net.Dialer{}).DialContext
	return rest.HTTPClientFor(config)
}

func objectName(index int) string { return fmt.Sprintf("shoot-%05d", index) }

func (s *side) create(ctx context.Context, index int) error {
	body := bytes.ReplaceAll(s.object, []byte(placeholder), []byte(objectName(index)))
	_, err := s.send(ctx, http.MethodPost, s.path, "application/json", body, nil)
	return err
}

// label changes one object.
func (s *side) label(ctx context.Context, index int, value string) error {
	body := fmt.Appendf(nil, `{"metadata":{"labels":{"bench":%q}}}`, value)
	_, err := s.send(ctx, http.MethodPatch, s.path+"/"+objectName(index), "application/merge-patch+json", body, nil)
	return err
}

// list reads all objects in one response from the cache, and returns its size in bytes.
func (s *side) list(ctx context.Context) (int64, error) {
	return s.send(ctx, http.MethodGet, s.path+"?resourceVersion=0", "", nil, nil)
}

// continuation finds the token for the next page in an encoded list. Decoding the list would take more time than
// the server needs.
var continuation = regexp.MustCompile(`"continue":"([^"]+)"`)

// listPages reads all objects page by page, and returns the number of pages.
func (s *side) listPages(ctx context.Context) (pages int, err error) {
	query := url.Values{"limit": {pageSize}}
	for {
		var page bytes.Buffer
		if _, err := s.send(ctx, http.MethodGet, s.path+"?"+query.Encode(), "", nil, &page); err != nil {
			return pages, err
		}
		pages++
		found := continuation.FindSubmatch(page.Bytes())
		if found == nil {
			return pages, nil
		}
		query.Set("continue", string(found[1]))
	}
}

// resourceVersion returns the current resourceVersion of the objects.
func (s *side) resourceVersion(ctx context.Context) (string, error) {
	var page bytes.Buffer
	if _, err := s.send(ctx, http.MethodGet, s.path+"?limit=1", "", nil, &page); err != nil {
		return "", err
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(page.Bytes(), &list); err != nil {
		return "", fmt.Errorf("read the resourceVersion of %s: %w", s.path, err)
	}
	return list.ResourceVersion, nil
}

// send sends a request, writes the response to into, which may be nil, and returns its size.
func (s *side) send(ctx context.Context, method, address, contentType string, body []byte, into io.Writer) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if response.StatusCode/100 != 2 {
		message, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		if err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("%s %s: %s: %s", method, address, response.Status, message)
	}
	if into == nil {
		into = io.Discard
	}
	size, err := io.Copy(into, response.Body)
	if err != nil {
		return size, fmt.Errorf("%s %s: %w", method, address, err)
	}
	return size, nil
}
