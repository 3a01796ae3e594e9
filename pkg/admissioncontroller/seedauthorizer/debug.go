package seedauthorizer

import (
	"net/http"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
)

// PathDebug is the path of the page with the graph.
const PathDebug = "/debug/resource-dependency-graph"

// DebugHandler serves the edges of a graph as text. The query parameters kind, namespace and name restrict it to those of one object. The
// page has names of objects, and no content.
func DebugHandler(g *graph.Graph) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		var of *graph.Vertex
		if query.Get("kind") != "" {
			vertex := graph.Canonical(graph.Vertex{Kind: graph.Kind(query.Get("kind")), Namespace: query.Get("namespace"), Name: query.Get("name")})
			of = &vertex
		}
		writer.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = g.Write(writer, of) // the client has gone
	})
}
