namespace shoal {}
