package graph

import "slices"

// Path returns a shortest path from one vertex to another whose edges permit at least an access, with both ends. It returns nil
// if there is none. A path passes no Seed but its ends: what a managed Seed needs is not needed by the Seed of its Shoot.
func (g *Graph) Path(from, to Vertex, access Access) []Vertex {
	var path []Vertex
	g.search(from, to, access, func(ids []int32) {
		for _, id := range ids {
			path = append(path, g.nodes[id].vertex)
		}
	})
	return path
}

// HasPath reports whether [Graph.Path] has a result.
func (g *Graph) HasPath(from, to Vertex, access Access) bool { return g.search(from, to, access, nil) }

// search searches from both ends, because some objects are needed by most Shoots, and some Seeds have most Shoots. Each step extends
// the side with fewer edges. It calls found with the nodes of the path before it releases the graph.
func (g *Graph) search(from, to Vertex, access Access, found func([]int32)) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	start, known := g.ids[from]
	if !known {
		return false
	}
	end, known := g.ids[to]
	if !known {
		return false
	}
	s, _ := g.searches.Get().(*search)
	if s == nil {
		s = &search{}
	}
	defer g.searches.Put(s)
	s.begin(len(g.nodes))
	s.Graph, s.start, s.end, s.access = g, start, end, access
	middle, is := s.run()
	if is && found != nil {
		found(s.path(middle))
	}
	s.Graph = nil
	return is
}

// search is the state of one search. Its buffers are used again.
type search struct {
	*Graph

	start, end int32
	access     Access
	// round distinguishes the marks of this search from those of earlier ones.
	round uint32
	sides [2]side
}

// side is the part of the search from one end.
type side struct {
	// seen is the round in which a node was last reached, and before is the node before it.
	seen     []uint32
	before   []int32
	frontier []int32
	next     []int32
}

const (
	forward  = 0
	backward = 1
)

func (s *search) begin(nodes int) {
	s.round++
	for i := range s.sides {
		side := &s.sides[i]
		if len(side.seen) < nodes || s.round == 0 {
			side.seen, side.before = make([]uint32, nodes+nodes/4), make([]int32, nodes+nodes/4)
		}
		side.frontier = side.frontier[:0]
	}
	if s.round == 0 {
		s.round = 1
	}
}

// run returns a node that both sides have reached.
func (s *search) run() (int32, bool) {
	if s.start == s.end {
		return s.start, s.reach(forward, s.start, s.start) && s.reach(backward, s.start, s.start)
	}
	s.reach(forward, s.start, s.start)
	s.reach(backward, s.end, s.end)
	for len(s.sides[forward].frontier) > 0 && len(s.sides[backward].frontier) > 0 {
		direction := forward
		if s.edges(backward) < s.edges(forward) {
			direction = backward
		}
		if middle, met := s.extend(direction); met {
			return middle, true
		}
	}
	return 0, false
}

// links returns the edges of a node in a direction.
func (s *search) links(direction int, id int32) []link {
	if direction == forward {
		return s.nodes[id].out
	}
	return s.nodes[id].in
}

// edges returns the number of edges of the frontier.
func (s *search) edges(direction int) (number int) {
	for _, id := range s.sides[direction].frontier {
		number += len(s.links(direction, id))
	}
	return number
}

// extend follows all edges of the frontier of one side. It returns the first node that the other side has reached.
func (s *search) extend(direction int) (int32, bool) {
	side := &s.sides[direction]
	frontier := side.frontier
	side.frontier = side.next[:0]
	side.next = frontier
	for _, id := range frontier {
		for _, link := range s.links(direction, id) {
			if link.access < s.access || !s.reach(direction, link.to, id) {
				continue
			}
			if s.sides[1-direction].seen[link.to] == s.round {
				return link.to, true
			}
		}
	}
	return 0, false
}

// reach adds a node to the frontier of a side. It returns false if it was reached before, or if no path may pass it.
func (s *search) reach(direction int, id, before int32) bool {
	side := &s.sides[direction]
	if side.seen[id] == s.round || s.nodes[id].vertex.Kind == Seed && id != s.start && id != s.end {
		return false
	}
	side.seen[id], side.before[id] = s.round, before
	side.frontier = append(side.frontier, id)
	return true
}

// path returns the nodes of the path through a node that both sides have reached.
func (s *search) path(middle int32) []int32 {
	var ids []int32
	for id := middle; ; id = s.sides[forward].before[id] {
		ids = append(ids, id)
		if id == s.start {
			break
		}
	}
	slices.Reverse(ids)
	for id := middle; id != s.end; {
		id = s.sides[backward].before[id]
		ids = append(ids, id)
	}
	return ids
}
