"""Set functions of arrays: distinct elements, membership, unions and intersections."""
