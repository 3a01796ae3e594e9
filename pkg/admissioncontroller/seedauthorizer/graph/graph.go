package graph

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Graph is a directed graph. Each edge has a source: the object from whose content it follows. All methods may be called
// concurrently.
type Graph struct {
	mu sync.RWMutex
	// ids are the indexes of vertices in nodes.
	ids   map[Vertex]int32
	nodes []node
	// free are the indexes of nodes that are not used.
	free []int32
	// sources are the edges by the objects from which they follow.
	sources map[Vertex][]Edge
	// searches are the buffers of searches that are not running.
	searches sync.Pool
}

// node is a vertex with its edges. There can be several edges between two nodes, from different sources.
type node struct {
	vertex  Vertex
	out, in []link
}

// link is one end of an edge.
type link struct {
	to     int32
	access Access
}

// New returns an empty graph.
func New() *Graph {
	return &Graph{ids: map[Vertex]int32{}, sources: map[Vertex][]Edge{}}
}

// Set replaces the edges that follow from an object. Without edges, the object is removed as a source.
func (g *Graph) Set(source Vertex, edges []Edge) {
	g.mu.RLock()
	same := sameEdges(g.sources[source], edges)
	g.mu.RUnlock()
	if same {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.sources[source]
	// Add first, so that nodes that remain are not removed in between.
	for _, edge := range edges {
		from, to := g.id(edge.From), g.id(edge.To)
		g.nodes[from].out = append(g.nodes[from].out, link{to, edge.Access})
		g.nodes[to].in = append(g.nodes[to].in, link{from, edge.Access})
	}
	for _, edge := range before {
		from, to := g.ids[edge.From], g.ids[edge.To]
		g.nodes[from].out = without(g.nodes[from].out, link{to, edge.Access})
		g.nodes[to].in = without(g.nodes[to].in, link{from, edge.Access})
		g.release(from)
		g.release(to)
	}
	if len(edges) == 0 {
		delete(g.sources, source)
		return
	}
	g.sources[source] = edges
}

// id returns the index of a vertex, which it adds if it is new.
func (g *Graph) id(vertex Vertex) int32 {
	if id, found := g.ids[vertex]; found {
		return id
	}
	var id int32
	if last := len(g.free) - 1; last >= 0 {
		id, g.free = g.free[last], g.free[:last]
		g.nodes[id] = node{vertex: vertex}
	} else {
		id = int32(len(g.nodes)) //nolint:gosec // a garden has fewer objects
		g.nodes = append(g.nodes, node{vertex: vertex})
	}
	g.ids[vertex] = id
	return id
}

// release removes a node without edges.
func (g *Graph) release(id int32) {
	at := &g.nodes[id]
	if len(at.out) > 0 || len(at.in) > 0 {
		return
	}
	if current, found := g.ids[at.vertex]; !found || current != id {
		return // already removed
	}
	delete(g.ids, at.vertex)
	*at = node{}
	g.free = append(g.free, id)
}

// without removes one link from a list, whose order does not matter.
func without(links []link, remove link) []link {
	at := slices.Index(links, remove)
	if at < 0 {
		return links
	}
	last := len(links) - 1
	links[at] = links[last]
	return links[:last]
}

// Has reports whether a vertex has edges.
func (g *Graph) Has(vertex Vertex) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	_, found := g.ids[vertex]
	return found
}

// Size returns the numbers of vertices and edges.
func (g *Graph) Size() (vertices, edges int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for i := range g.nodes {
		edges += len(g.nodes[i].out)
	}
	return len(g.ids), edges
}

// Edges returns all edges, sorted.
func (g *Graph) Edges() []Edge {
	g.mu.RLock()
	var all []Edge
	for _, edges := range g.sources {
		all = append(all, edges...)
	}
	g.mu.RUnlock()
	slices.SortFunc(all, func(a, b Edge) int {
		return cmp.Or(compare(a.From, b.From), compare(a.To, b.To), cmp.Compare(a.Access, b.Access))
	})
	return slices.Compact(all)
}

func compare(a, b Vertex) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Write writes the edges of a vertex as text, one in each line, or all edges if it is nil.
func (g *Graph) Write(writer io.Writer, of *Vertex) error {
	for _, edge := range g.Edges() {
		if of != nil && edge.From != *of && edge.To != *of {
			continue
		}
		if _, err := fmt.Fprintf(writer, "%s -> %s (%s)\n", edge.From, edge.To, edge.Access); err != nil {
			return fmt.Errorf("write the graph: %w", err)
		}
	}
	return nil
}
